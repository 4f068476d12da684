"""Kafka Streams' stateful operators as plain Python algorithms: bytes in, bytes out, one record after the other."""

from streamskit.operators.aggregate import AggregateOperator, CountOperator
from streamskit.operators.foreign_key_join import (
    ResponseJoinOperator,
    SubscriptionJoinOperator,
    SubscriptionSendOperator,
)
from streamskit.operators.pages import PageStore
from streamskit.operators.partition_time import PartitionTimeOperator
from streamskit.operators.processors import InputPort, OutputPort, ProcessorsOperator, ProcessorSpec
from streamskit.operators.records import NOTE, OUT_OF_ORDER, STORE_ONLY, OperatorRecord, Output, SourceRecord
from streamskit.operators.session_aggregate import SessionAggregateOperator
from streamskit.operators.session_store import BytesSessionStore
from streamskit.operators.stores import BytesKeyValueStore
from streamskit.operators.stream_join import StreamJoinOperator
from streamskit.operators.stream_table_join import StreamTableJoinOperator
from streamskit.operators.stream_task import Operator, OperatorContext, StreamTask
from streamskit.operators.suppress import SuppressOperator
from streamskit.operators.table_join import TableJoinOperator
from streamskit.operators.table_source import LatestValueOperator, TableAggregateOperator
from streamskit.operators.versioned_store import BytesVersionedStore
from streamskit.operators.window_aggregate import WindowAggregateOperator
from streamskit.operators.window_store import BytesWindowStore

__all__ = [
    "NOTE",
    "OUT_OF_ORDER",
    "STORE_ONLY",
    "AggregateOperator",
    "BytesKeyValueStore",
    "BytesSessionStore",
    "BytesVersionedStore",
    "BytesWindowStore",
    "CountOperator",
    "InputPort",
    "LatestValueOperator",
    "Operator",
    "OperatorContext",
    "OperatorRecord",
    "Output",
    "OutputPort",
    "PageStore",
    "PartitionTimeOperator",
    "ProcessorSpec",
    "ProcessorsOperator",
    "ResponseJoinOperator",
    "SessionAggregateOperator",
    "SourceRecord",
    "StreamJoinOperator",
    "StreamTableJoinOperator",
    "StreamTask",
    "SubscriptionJoinOperator",
    "SubscriptionSendOperator",
    "SuppressOperator",
    "TableAggregateOperator",
    "TableJoinOperator",
    "WindowAggregateOperator",
]
