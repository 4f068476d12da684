"""`StreamPartitioner`: which partitions of a topic a record goes to, where its key alone should not decide."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import index
from typing import Any

from streamskit.common.errors import StreamsError

Partitions = int | Iterable[int] | None
"""The number of one partition, the numbers of several, or None for the default partitioner."""

ARGUMENTS = ("topic", "key", "value", "num_partitions")
"""What a partitioner is called with."""


class StreamPartitioner(ABC):
    """Chooses the partitions for each record that is written to a topic. A function of the same arguments works too.

    It runs where the records are, in one of Spark's processes, on plain Python values; what it prints does not appear
    in a notebook. It should depend on nothing but its arguments, so that it gives the same answer after a restart.

    >>> class ByRegion(StreamPartitioner):
    ...     def partitions(self, topic, key, value, num_partitions):
    ...         return 0 if key.startswith("EU-") else None
    ...
    >>> trades.to("trades-by-region", partitioner=ByRegion())

    Mirrors `org.apache.kafka.streams.processor.StreamPartitioner`.
    """

    @abstractmethod
    def partitions(self, topic: str, key: Any, value: Any, num_partitions: int) -> Partitions:
        """Return where a record goes.

        Args:
            topic: the topic that it is written to.
            key: its key, before it is serialized.
            value: its value, likewise.
            num_partitions: how many partitions the topic has.

        Returns:
            The number of a partition, from 0 on; several numbers for a copy to each; no numbers at all (`[]`) to drop
            the record, which is counted; or None to leave the choice to Kafka's default partitioner,
            which uses the murmur2 hash of the key's bytes.
        """


Partitioner = StreamPartitioner | Callable[[str, Any, Any, int], Partitions]
"""A `StreamPartitioner`, or a function that does what its `partitions` does."""

Partition = Callable[[str, Any, Any, int], Partitions]
"""The function of a partitioner."""


def partition_function(partitioner: Partitioner) -> Partition:
    """Return the function to call for a partitioner: its method `partitions`, or the partitioner itself."""
    named: Any = getattr(partitioner, "partitions", None)
    function: Partition = partitioner if named is None else named  # type: ignore[assignment]
    return function


def chosen(partition: Partition, topic: str, key: Any, value: Any, num_partitions: int) -> list[int] | None:
    """Return the partitions that a partitioner chooses, each once and in order; None leaves it to the default.

    Some of them may be partitions that the topic does not have.

    Raises:
        StreamsError: it returned no numbers, or one below 0.
    """
    answer = partition(topic, key, value, num_partitions)
    if answer is None:
        return None
    said = f"the partitioner returned {answer!r} for a record of topic '{topic}'"
    right = (
        "Return the number of a partition, several numbers in a list or set (none of them drops the record), or None "
        "for the default partitioner."
    )
    numbers: list[Any] = (
        [answer] if isinstance(answer, str | bytes) or not isinstance(answer, Iterable) else list(answer)
    )
    if any(isinstance(number, bool) for number in numbers):
        raise StreamsError(f"{said}; that is a bool and no number. {right}")
    try:
        found = sorted({index(number) for number in numbers})
    except TypeError:
        raise StreamsError(f"{said}; that is no number. {right}") from None
    if found and found[0] < 0:
        raise StreamsError(f"{said}, whose {_numbers(num_partitions)}. {right}")
    return found


def only_one(partition: Partition, topic: str, key: Any, num_partitions: int) -> int | None:
    """Return the one partition that a partitioner chooses for a key; None leaves it to the default.

    Args:
        partition: the function of a partitioner; it is called without a value.
        topic: the topic.
        key: the key.
        num_partitions: how many partitions the topic has.

    Raises:
        StreamsError: it chose none, or several.
    """
    found = chosen(partition, topic, key, None, num_partitions)
    if found is None:
        return None
    if len(found) == 1:
        return found[0]
    raise StreamsError(
        f"the partitioner chose {_spelled(found)} for the key {key!r}, and has to choose exactly one here, by the key "
        "alone (the value that it is given is None)."
    )


@dataclass(frozen=True)
class KeyPartitioner:
    """A partitioner's function where it has to choose exactly one partition, by the key alone, if there is a key."""

    partition: Partition

    def __call__(self, topic: str, key: Any, value: Any, num_partitions: int) -> int | None:
        return None if key is None else only_one(self.partition, topic, key, num_partitions)


def beyond(topic: str, numbers: list[int], num_partitions: int) -> str:
    """Return what is wrong with partitions that a topic does not have, without a full stop."""
    return f"the partitioner chose {_spelled(numbers)} of topic '{topic}', whose {_numbers(num_partitions)}"


def _spelled(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"partition {numbers[0]}"
    return f"partitions {', '.join(map(str, numbers))}" if numbers else "no partition"


def _numbers(num_partitions: int) -> str:
    if num_partitions == 1:
        return "only partition is number 0"
    return f"{num_partitions} partitions are numbered from 0 to {num_partitions - 1}"
