"""Task operators: Kafka Streams' stateful algorithms in plain Python: bytes in, bytes out, record by record."""

from streamskit.operators.aggregate import AggregateOperator, CountOperator, TableAggregateOperator
from streamskit.operators.bytes_stores import BytesKeyValueStore, BytesVersionedStore
from streamskit.operators.bytes_timed_stores import BytesSessionStore, BytesWindowStore, RowRetention
from streamskit.operators.foreign_key_join import (
    ResponseJoinOperator,
    SubscriptionJoinOperator,
    SubscriptionSendOperator,
)
from streamskit.operators.paged_state import NoPages, PageStore
from streamskit.operators.processors import InputPort, OutputPort, ProcessorsOperator, ProcessorSpec, TableStore
from streamskit.operators.records import (
    ERROR_ROW,
    OUT_OF_ORDER,
    STORE_ONLY,
    STORE_UPDATE,
    OperatorRecord,
    Output,
    SourceRecord,
)
from streamskit.operators.session_aggregate import SessionAggregateOperator
from streamskit.operators.sliding_window_aggregate import SlidingWindowAggregateOperator
from streamskit.operators.sources import LatestValueOperator, OrderOperator, PartitionTimeOperator
from streamskit.operators.stream_join import StreamJoinOperator
from streamskit.operators.stream_table_join import StreamTableJoinOperator
from streamskit.operators.stream_task import Operator, OperatorContext, StreamTask
from streamskit.operators.suppress import SuppressOperator
from streamskit.operators.table_join import TableJoinOperator
from streamskit.operators.transform_values import TransformerNode, TransformValuesOperator
from streamskit.operators.window_aggregate import WindowAggregateOperator

__all__ = [
    "ERROR_ROW",
    "OUT_OF_ORDER",
    "STORE_ONLY",
    "STORE_UPDATE",
    "AggregateOperator",
    "BytesKeyValueStore",
    "BytesSessionStore",
    "BytesVersionedStore",
    "BytesWindowStore",
    "CountOperator",
    "InputPort",
    "LatestValueOperator",
    "NoPages",
    "Operator",
    "OperatorContext",
    "OperatorRecord",
    "OrderOperator",
    "Output",
    "OutputPort",
    "PageStore",
    "PartitionTimeOperator",
    "ProcessorSpec",
    "ProcessorsOperator",
    "ResponseJoinOperator",
    "RowRetention",
    "SessionAggregateOperator",
    "SlidingWindowAggregateOperator",
    "SourceRecord",
    "StreamJoinOperator",
    "StreamTableJoinOperator",
    "StreamTask",
    "SubscriptionJoinOperator",
    "SubscriptionSendOperator",
    "SuppressOperator",
    "TableAggregateOperator",
    "TableJoinOperator",
    "TableStore",
    "TransformValuesOperator",
    "TransformerNode",
    "WindowAggregateOperator",
]
