"""How an application wants its queries to run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamskit.api.client_settings import BootstrapServers
from streamskit.api.error_handlers import Handlers
from streamskit.operators.record_cache import CACHE_BYTES

ANY_TIME = 2**63 - 1
"""A distance of timestamps from the clock for which none is too far."""


@dataclass(frozen=True)
class TopicRules:
    """What a topic requires of its records, as set in the broker, which refuses all others.

    Times are in milliseconds: how far a timestamp may be before the broker's clock, and after it.
    """

    is_compacted: bool = False
    before: int = ANY_TIME
    after: int = ANY_TIME
    max_bytes: int = 2**31 - 1


@dataclass(frozen=True)
class QueryOptions:
    """How an application wants its queries to run.

    With `cache` the updates of a key are folded within a micro-batch, up to `cache_bytes` of them in all tasks.
    `emit_interval` (milliseconds) is how often unmatched and final results are looked for. `test` says that records
    come from a test driver, one after the other. `real_time` says that queries run in Spark's real-time mode where they
    can. The `handlers` decide about records that fail. The `bootstrap_servers`, if any, are queried for whether a topic
    exists. The `rules` are those of the topics that are written, as far as known. `threads_of` is the
    application whose stream threads say how many slots of Spark's a query may use; "" for all slots. `as_they_come`
    says that records of one topic are taken without waiting for those of another (`max_task_idle_ms=-1`).
    `in_transactions` says that each micro-batch is written in one transaction.
    `driver` is the id of a test driver's query that has one task and a batch that stays open; "" for others.
    """

    cache: bool = False
    cache_bytes: int = CACHE_BYTES
    emit_interval: int = 0
    test: bool = False
    real_time: bool = False
    handlers: Handlers = field(default_factory=Handlers)
    bootstrap_servers: BootstrapServers = ""
    rules: Mapping[str, TopicRules] = field(default_factory=dict)
    threads_of: str = ""
    as_they_come: bool = False
    in_transactions: bool = False
    driver: str = ""
