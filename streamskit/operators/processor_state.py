"""Processor state: the fields and punctuations of processors, kept from one micro-batch to the next in a page."""

import io
import pickle
from typing import Any

from pyspark.cloudpickle import Pickler

from streamskit.common.errors import StreamsError
from streamskit.operators.error_handling import attribute_failure
from streamskit.operators.stream_task import StreamTask

Reference = tuple[str, str]
"""Kind ("processor", "context" or "store") and name of an object that every micro-batch creates again."""


class ProcessorState:
    """Keeps the fields of a group's processors until the application stops.

    Spark hands the records of a task to whichever Python process is free, so no object survives by itself. After a
    restart (another `run`) processors start afresh, as they do in Kafka Streams.

    Args:
        name: the group's name, of which the page's name is made.
        task: the group's task.
        objects: the processors, contexts and stores, to which fields only refer.
    """

    def __init__(self, name: str, task: StreamTask, objects: dict[Reference, Any]) -> None:
        self._page, self._pages, self._run = f"{name}/fields", task.pages, task.run
        self._objects, self._punctuations = objects, task.punctuations
        self._references = {id(thing): reference for reference, thing in objects.items()}
        self._saved = self._pages.load(self._page)

    def restore(self) -> bool:
        """Give the processors the fields and punctuations they had; return False if this run has none yet."""
        if self._saved is None:
            return False
        run, data = pickle.loads(self._saved)
        if run != self._run:
            return False
        fields, schedules = _Unpickler(data, self._objects).load()
        self._punctuations.put_back(schedules)
        for name, values in fields.items():
            self._objects["processor", name].__dict__.update(values)
        return True

    def save(self) -> None:
        """Save the processors' fields and punctuations, if they have changed.

        Raises:
            StreamsError: a processor holds something that cannot be pickled.
        """
        fields = {name: thing.__dict__ for (kind, name), thing in self._objects.items() if kind == "processor"}
        try:
            state = self._pickled((fields, self._punctuations.of(fields)))
        except Exception as failure:
            processor, reason = self._unpicklable(fields)
            error = StreamsError(f"{processor}: {reason}")
            attribute_failure(error, processor)
            raise error from failure
        data = pickle.dumps((self._run, state), protocol=5)
        if data != self._saved:
            self._pages.save(self._page, data)
            self._saved = data

    def _unpicklable(self, fields: dict[str, dict[str, Any]]) -> tuple[str, str]:
        """Return the name of a processor that cannot be pickled, and why."""
        for processor, values in fields.items():
            for field, value in values.items():
                if not self._can_be_pickled(value):
                    return processor, (
                        f"its field '{field}' is a {type(value).__name__}, which cannot be kept from one micro-batch "
                        "to the next. Make it where it is used, or let go of it in close()."
                    )
        schedules = self._punctuations.of(fields)
        culprit = next((schedule for schedule in schedules if not self._can_be_pickled(schedule)), schedules[0])
        return culprit.processor, (
            "a punctuation of it holds something that cannot be kept from one micro-batch to the next. Make it a "
            "method of the processor."
        )

    def _can_be_pickled(self, value: Any) -> bool:
        try:
            self._pickled(value)
        except Exception:
            return False
        return True

    def _pickled(self, value: Any) -> bytes:
        file = io.BytesIO()
        _Pickler(file, self._references).dump(value)  # type: ignore[no-untyped-call]
        return file.getvalue()


class _Pickler(Pickler):
    def __init__(self, file: io.BytesIO, references: dict[int, Reference]) -> None:
        super().__init__(file, protocol=5)  # type: ignore[no-untyped-call]
        self._references = references

    def persistent_id(self, thing: Any) -> Any:
        return self._references.get(id(thing))


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, objects: dict[Reference, Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._objects = objects

    def persistent_load(self, reference: Any) -> Any:
        return self._objects[reference]
