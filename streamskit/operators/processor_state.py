"""What a processor is from one micro-batch to the next: its fields and punctuations, pickled in a page of its task."""

import io
import pickle
from typing import TYPE_CHECKING, Any

from pyspark.cloudpickle import Pickler

from streamskit.common.errors import StreamsError
from streamskit.operators.failure_attribution import attribute_failure

if TYPE_CHECKING:
    from streamskit.operators.processors import RunningProcessorGroup


class ProcessorState:
    """Keeps the fields of a group's processors until the application stops.

    Spark hands the records of a task to whichever Python process is free, so that no object lives on by itself. After a
    new start (another `run`) processors begin anew, as they do in Kafka Streams.
    """

    def __init__(self, group: "RunningProcessorGroup", run: str) -> None:
        self._group, self._run = group, run
        self._page = f"{group.operator.name}/fields"
        self._saved: bytes | None = group.task.pages.load(self._page)
        group.task.keep(self)

    def begin(self) -> None:
        """Give the processors the fields they had, or initialize them."""
        group = self._group
        run, fields = ("", b"") if self._saved is None else pickle.loads(self._saved)
        if self._saved is None or run != self._run:
            for running in group.running.values():
                running.initialize()
            return
        kept, group.schedules.kept[:] = _Unpickler(fields, self._own_things()).load()
        group.schedules.count_anew()
        for name, values in kept.items():
            group.running[name].processor.__dict__.update(values)

    def save(self) -> None:
        """Close the processors and keep their fields."""
        fields = {}
        for name, running in self._group.running.items():
            running.close()
            fields[name] = running.processor.__dict__
        data = pickle.dumps((self._run, self._pickled(fields)), protocol=5)
        if data != self._saved:
            self._group.task.pages.save(self._page, data)

    def _pickled(self, fields: dict[str, dict[str, Any]]) -> bytes:
        names = {id(thing): name for name, thing in self._own_things().items()}
        try:
            return _dumps((fields, self._group.schedules.kept), names)
        except Exception as failure:
            processor, trouble = self._trouble(fields, names)
            error = StreamsError(f"{processor}: {trouble}")
            attribute_failure(error, processor)
            raise error from failure

    def _trouble(self, fields: dict[str, dict[str, Any]], names: dict[int, tuple[str, str]]) -> tuple[str, str]:
        """Return the name of a processor that cannot be kept, and why."""
        for processor, values in fields.items():
            for field, value in values.items():
                if not _can_be_pickled(value, names):
                    return processor, (
                        f"its field '{field}' is a {type(value).__name__}, which cannot be kept from one micro-batch "
                        "to the next. Make it where it is used, or let go of it in close()."
                    )
        kept = self._group.schedules.kept
        culprit = next((schedule for schedule in kept if not _can_be_pickled(schedule, names)), kept[0])
        return culprit.member, (
            "a punctuation of it holds something that cannot be kept from one micro-batch to the next. Make it a "
            "method of the processor."
        )

    def _own_things(self) -> dict[tuple[str, str], Any]:
        """Return what every micro-batch makes anew, by name: fields only point to it."""
        group = self._group
        things: dict[tuple[str, str], Any] = {("store", name): store for name, store in group.stores.items()}
        for name, running in group.running.items():
            things |= {("processor", name): running.processor, ("context", name): running.context}
        return things


class _Pickler(Pickler):
    def __init__(self, file: io.BytesIO, names: dict[int, tuple[str, str]]) -> None:
        super().__init__(file, protocol=5)  # type: ignore[no-untyped-call]
        self._names = names

    def persistent_id(self, thing: Any) -> Any:
        return self._names.get(id(thing))


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, things: dict[tuple[str, str], Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._things = things

    def persistent_load(self, name: Any) -> Any:
        return self._things[name]


def _dumps(value: Any, names: dict[int, tuple[str, str]]) -> bytes:
    file = io.BytesIO()
    _Pickler(file, names).dump(value)  # type: ignore[no-untyped-call]
    return file.getvalue()


def _can_be_pickled(value: Any, names: dict[int, tuple[str, str]]) -> bool:
    try:
        _dumps(value, names)
    except Exception:
        return False
    return True
