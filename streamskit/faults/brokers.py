"""Faults: a broker that dies, and one that hangs."""

import threading
from datetime import timedelta

from streamskit.broker import find_shared_broker
from streamskit.broker.base import Broker
from streamskit.broker.external import ExternalBroker
from streamskit.common.durations import spell, to_milliseconds
from streamskit.common.errors import BrokerError
from streamskit.faults.fault import Fault

WATCH = (
    "an application's state is REBALANCING until the broker is back, and RUNNING then; its queries are the same, and "
    "nothing is lost"
)


def kill_broker(seconds: str | float | timedelta | None = 20, broker: Broker | None = None) -> Fault:
    """Kill a broker with signal 9, and start it again on its data after a time.

    Args:
        seconds: how long it is away, in seconds or as a text such as "1 minute"; None for until `undo`.
        broker: which one; the project's shared broker when not given.

    Raises:
        BrokerError: it does not run, or it is not this project's own.
        ValueError: `seconds` is no duration; nothing is broken then.

    >>> fault = kill_broker(10)  # doctest: +SKIP
    >>> streams.await_processed()  # waits until the broker is back  # doctest: +SKIP
    """
    limit, chosen = lasting(seconds), own(broker, "killed")
    _check_runs(chosen)
    chosen.kill()
    return Fault(
        f"The broker at {chosen.bootstrap_servers} was killed with signal 9{_for(limit)}.",
        WATCH,
        "undo() starts it again now, on its data and port",
        chosen.start,
        limit,
    )


def pause_broker(seconds: str | float | timedelta | None = 20, broker: Broker | None = None) -> Fault:
    """Freeze a broker: it keeps its connections but does not answer, like one that hangs or is cut off.

    Args:
        seconds: how long it hangs, in seconds or as a text such as "1 minute"; None for until `undo`.
        broker: which one; the project's shared broker when not given.

    Raises:
        BrokerError: it does not run, or it is not this project's own.
        ValueError: `seconds` is no duration; nothing is broken then.

    >>> with pause_broker(None):  # doctest: +SKIP
    ...     streams.state
    <State.REBALANCING: 'REBALANCING'>
    """
    limit, chosen = lasting(seconds), own(broker, "paused")
    _check_runs(chosen)
    chosen.pause()
    return Fault(
        f"The broker at {chosen.bootstrap_servers} was frozen{_for(limit)}: it holds its connections and is silent.",
        WATCH + "; it is noticed later than a broker that died, for no connection breaks",
        "undo() lets it go on now",
        chosen.resume,
        limit,
    )


def own(broker: Broker | None, done: str) -> Broker:
    """Return the broker to break, the shared one if none is given.

    Raises:
        BrokerError: it belongs to others, or no shared broker runs.
    """
    chosen = broker or find_shared_broker()
    if chosen is None:
        raise BrokerError(f"No shared broker runs that could be {done}: start one with shared_broker().")
    if not isinstance(chosen, Broker) or isinstance(chosen, ExternalBroker):
        name = chosen.bootstrap_servers if isinstance(chosen, ExternalBroker) else repr(chosen)
        raise BrokerError(
            f"{name} is not this project's broker, and others may need it: it is not {done} from here. Use "
            "EmbeddedBroker(), or unset STREAMSKIT_BOOTSTRAP_SERVERS."
        )
    return chosen


def _check_runs(broker: Broker) -> None:
    if not broker.is_running:
        raise BrokerError(f"{broker!r} is not running, so there is nothing to break. Start it first: broker.start().")


def lasting(seconds: str | float | timedelta | None) -> float | None:
    """Return how many seconds a fault lasts, None for until it is undone; it is asked before anything is broken.

    Raises:
        ValueError: `seconds` is no duration.
    """
    if seconds is None:
        return None
    limit = to_milliseconds(seconds, "seconds") / 1000 if isinstance(seconds, str | timedelta | bool) else seconds
    if isinstance(limit, Broker):
        raise ValueError("The broker is the second argument, after the seconds: write kill_broker(20, broker).")
    if not 0 <= limit < threading.TIMEOUT_MAX:  # which NaN is not, either
        raise ValueError(f"seconds={seconds!r} is no time that a fault can last: give 0 or more, as in 20.")
    return limit


def _for(seconds: float | None) -> str:
    return "" if seconds is None else f", for {spell(round(seconds * 1000))}"
