"""Pictures of tasks and of who hosts what: drawn from what was measured, and told in words."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from streamskit.views import task_timelines
from streamskit.views.task_timelines import hosting, tasks_timeline
from streamskit.views.timeline_parts import finished

PNG = b"\x89PNG"


def tasks(*rows: tuple[str, int, int, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["executor", "partition", "started", "milliseconds"])


def test_tasks_that_run_at_the_same_time_have_lines_of_their_own() -> None:
    picture = tasks_timeline(
        tasks(("0", 0, 1000, 100), ("0", 1, 1050, 100), ("0", 2, 1100, 60), ("1", 3, 1000, 400)), "A batch"
    )
    assert picture.alt == (
        "A batch: 4 tasks in 400 ms; executor 0 slot 1: partitions 0, 2; executor 0 slot 2: partitions 1; "
        "executor 1 slot 1: partitions 3"
    )
    assert picture.data.startswith(PNG)
    assert repr(picture) == f"<Picture: {picture.alt}>"


def test_a_local_executor_is_this_process() -> None:
    assert "this process slot 1: partitions 7" in tasks_timeline(tasks(("driver", 7, 0, 5))).alt


def test_without_a_task_there_is_no_picture() -> None:
    with pytest.raises(ValueError, match="There is no task to draw"):
        tasks_timeline(tasks())


def test_bars_too_narrow_for_a_number_have_none_and_are_not_covered_by_their_edge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[Figure] = []

    def keep(figure: Figure) -> Figure:
        drawn.append(figure)
        return finished(figure)

    monkeypatch.setattr(task_timelines, "finished", keep)
    tasks_timeline(tasks(*(("driver", number % 2, number * 10, 5) for number in range(300)), ("driver", 7, 0, 2000)))
    (axes,) = drawn[0].axes
    assert [text.get_text() for text in axes.texts] == ["7"]
    opaque = sorted(np.asarray(bars.get_edgecolor())[:, 3].tolist() for bars in axes.collections if bars.get_paths())
    assert [set(each) for each in opaque] == [{0.0}, {0.0}, {1.0}]


def test_who_hosts_what_is_told_for_each_moment() -> None:
    def shares(*rows: tuple[str, str, int]) -> pd.DataFrame:
        return pd.DataFrame(rows, columns=["instance", "role", "partition"])

    alone, both = shares(("A", "active", 1), ("A", "active", 0)), shares(("A", "active", 0), ("B", "standby", 0))
    picture = hosting({"alone": alone, "both": both})
    assert picture.alt == "alone: A active 0 1; both: A active 0, B standby 0"
    assert picture.data.startswith(PNG)


def test_a_picture_on_a_page_carries_its_words() -> None:
    picture = tasks_timeline(tasks(("driver", 0, 0, 5)), 'A "small" batch')
    assert picture._repr_html_().startswith('<img alt="A &quot;small&quot; batch: 1 tasks in 5 ms; ')
