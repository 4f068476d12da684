"""Transformers of tables: they make a new value of each row, and may keep state in stores."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamskit.api.processor import Processor, ProcessorContext, Record, ValueTransformerWithKey
from streamskit.common.errors import StreamsError
from streamskit.operators.processors import ProcessorsOperator, RunningProcessors
from streamskit.operators.records import STORE_UPDATE, OperatorRecord
from streamskit.operators.sources import LatestValueOperator
from streamskit.operators.stream_task import OperatorContext, ProcessRecord


@dataclass(frozen=True)
class TransformValuesOperator(ProcessorsOperator):
    """Transformer of a table: gives each row the value that a `ValueTransformerWithKey` makes of it.

    `value` and `old` of the output are the new value and the previous one, `other` is the `extra` of the update. An
    update of one of the transformer's own stores has `STORE_UPDATE` in `other`, followed by the store's number, from 1.
    The transformer is one of `processors`, with one input and one output port.
    Mirrors `org.apache.kafka.streams.kstream.internals.KTableTransformValues`.

    Args:
        sends_old: whether a later step needs old values.
        keeps_rows: whether the rows that it makes are kept, to take the old values from; otherwise the transformer
            makes these from the old values that come in.
        history: how far back versions of the rows are kept, in milliseconds; None keeps the latest only.
        is_ordinary: whether the table has a store without versions, so that what comes after it takes every update for
            the latest of its row.
    """

    sends_old: bool = False
    keeps_rows: bool = False
    history: int | None = None
    is_ordinary: bool = False

    @property
    def is_cacheable(self) -> bool:
        return self.keeps_rows and not self.logged

    def open(self, context: OperatorContext) -> ProcessRecord:
        forward = context.forward
        transform = _RunningTransformer(self, context).transform
        if self.keeps_rows:
            keep = LatestValueOperator(f"{self.name}/rows", self.history).open(context)
            return lambda side, record: keep(side, record._replace(value=transform(record, record.value)))

        def process(side: int, record: OperatorRecord) -> None:
            value = transform(record, record.value)
            old = transform(record, record.old) if self.sends_old else None
            forward(
                record.key, value, record.timestamp, record.headers, old, None if self.is_ordinary else record.extra
            )

        return process


class TransformerNode(Processor):
    """Wraps a transformer as a processor, so that it has a life cycle, stores and punctuations."""

    def __init__(self, supplier: Callable[[], ValueTransformerWithKey]) -> None:
        self.transformer = supplier()

    def init(self, context: ProcessorContext) -> None:
        """Initialize the transformer.

        Raises:
            StreamsError: its supplier made something other than a transformer.
        """
        if not isinstance(self.transformer, ValueTransformerWithKey):
            raise StreamsError(
                f"its supplier made a {type(self.transformer).__name__}, and has to make a ValueTransformerWithKey: "
                "pass the class itself, or a function without arguments that makes one."
            )
        self.transformer.init(context)

    def close(self) -> None:
        """Close the transformer."""
        self.transformer.close()

    def process(self, record: Record) -> None:
        """Never called: the transformer's own `transform` is used."""
        raise NotImplementedError


class _RunningTransformer(RunningProcessors):
    """The transformer of one task, alive for one micro-batch."""

    def __init__(self, operator: TransformValuesOperator, context: OperatorContext) -> None:
        super().__init__(operator, context)
        self._name, self._input, self._output = operator.name, operator.inputs[0], operator.outputs[0]
        self._transform = self.nodes[operator.name].processor.transformer.transform

    def transform(self, record: OperatorRecord, value: bytes | None) -> bytes | None:
        """Return what the transformer makes of a value of the record's row."""
        self.timestamp = record.timestamp
        made = self._transform(self._input.key.deserialize(record.key), self._input.value.deserialize(value))
        return self._output.value.serialize(made)

    def send(self, output: int, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        """Refuse to forward a record.

        Raises:
            StreamsError: always.
        """
        raise StreamsError(f"{self._name}: a transformer forwards nothing: return the new value from transform().")

    def _write_changelog(self, port: bytes | None, key: bytes, value: bytes | None, timestamp: int) -> None:
        self._forward(key, value, timestamp, None, None, STORE_UPDATE + (port or b""))
