"""Going through records in the order they came: a slider, and two buttons that go one step."""

import threading
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets


class Stepper(widgets.HBox):
    """Chooses after how many records to look; while nobody has chosen, it shows how many there are.

    `chosen` is that number, or None. It is set at once when the learner moves the slider, before anybody is told: a
    view that looks at this moment must not move it back.

    Args:
        stepped: called when the learner has chosen.

    >>> stepper = Stepper(lambda: print(stepper.chosen))
    """

    def __init__(self, stepped: Callable[[], None]) -> None:
        self.chosen: int | None = None
        self._stepped, self._shown_by = stepped, 0
        self._slider = widgets.IntSlider(
            description="Records",
            min=0,
            max=0,
            tooltip="After how many records, in the order they came",
            style={"description_width": "58px"},
            layout=widgets.Layout(width="360px"),
        )
        self._back = _button("step-backward", "One record back", lambda: self._go(-1))
        self._forward = _button("step-forward", "One record forward", lambda: self._go(1))
        self._slider.observe(self._on_slide, "value")
        super().__init__([self._back, self._slider, self._forward])

    def show(self, count: int) -> int:
        """Show that there are so many records, and return after how many to look: as chosen, or after all."""
        self._shown_by = threading.get_ident()
        try:
            self._slider.max = count
            self._slider.value = count if self.chosen is None else min(self.chosen, count)
        finally:
            self._shown_by = 0
        return count if self.chosen is None else min(self.chosen, count)

    def release(self) -> None:
        """Forget what was chosen."""
        self.chosen = None

    def _go(self, steps: int) -> None:
        self._slider.value = max(0, min(self._slider.max, self._slider.value + steps))

    def _on_slide(self, change: Any) -> None:
        # The learner's moves come in another thread than those of the view that looks.
        if self._shown_by != threading.get_ident():
            self.chosen = int(change.new)
            self._stepped()


def _button(icon: str, tooltip: str, act: Callable[[], None]) -> widgets.Button:
    button = widgets.Button(icon=icon, tooltip=tooltip, layout=widgets.Layout(width="38px"))
    button.on_click(lambda _: act())
    return button
