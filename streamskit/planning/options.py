"""How an application wants its queries to run."""

from dataclasses import dataclass, field

from streamskit.api.error_handlers import Handlers
from streamskit.operators.stream_task import CACHE_BYTES


@dataclass(frozen=True)
class QueryOptions:
    """How an application wants its queries to run.

    With `cache` the updates of a key are folded within a micro-batch, up to `cache_bytes` of them. `emit_interval`
    (milliseconds) is how often unmatched and final results are looked for. `test` says that records come from a test
    driver, one a batch. The `handlers` decide about records that fail. Whether a topic is there is asked of the
    `bootstrap_servers`, if there are any.
    """

    cache: bool = False
    cache_bytes: int = CACHE_BYTES
    emit_interval: int = 0
    test: bool = False
    handlers: Handlers = field(default_factory=Handlers)
    bootstrap_servers: str = ""
