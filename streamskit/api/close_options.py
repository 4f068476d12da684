"""`CloseOptions`: how an application is closed."""

from dataclasses import dataclass

from streamskit.common.durations import Duration


@dataclass(frozen=True)
class CloseOptions:
    """How `KafkaStreams.close` closes an application.

    Args:
        timeout: how long that may take, a duration.
        leave_group: whether an instance (one with an `application_server`) leaves the group of instances that share
            the stores, so that others take over its share at once. Otherwise the share is kept for its next start at
            the same address until the `session_timeout` is over, which suits a quick restart. Kafka Streams' default
            is to stay.

    >>> CloseOptions(timeout="5 seconds", leave_group=False)
    CloseOptions(timeout='5 seconds', leave_group=False)

    Mirrors `KafkaStreams.CloseOptions`.
    """

    timeout: Duration = "30 seconds"
    leave_group: bool = True
