"""What a partitioner may return, and what is said of anything else."""

from typing import Any

import pytest

from streamskit import StreamPartitioner, StreamsError
from streamskit.api.stream_partitioner import KeyPartitioner, Partition, chosen, only_one, partition_function


def answering(answer: Any) -> Partition:
    return lambda topic, key, value, num_partitions: answer


@pytest.mark.parametrize(
    ("answer", "partitions"),
    [(None, None), (2, [2]), ([], []), ({2, 0}, [0, 2]), ((1, 1), [1]), (range(3), [0, 1, 2]), ([7], [7])],
)
def test_a_partitioner_names_one_partition_several_none_or_leaves_it_to_the_default(
    answer: Any, partitions: list[int] | None
) -> None:
    assert chosen(answering(answer), "out", "k", "v", 3) == partitions


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("0", "returned '0' for a record of topic 'out'; that is no number"),
        ([0, None], "returned [0, None] for a record of topic 'out'; that is no number"),
        (1.0, "returned 1.0 for a record of topic 'out'; that is no number"),
        (True, "returned True for a record of topic 'out'; that is a bool and no number"),
        (-1, "returned -1 for a record of topic 'out', whose 3 partitions are numbered from 0 to 2"),
    ],
)
def test_any_other_answer_is_refused_with_what_to_return(answer: Any, said: str) -> None:
    with pytest.raises(StreamsError) as refused:
        chosen(answering(answer), "out", "k", "v", 3)
    assert said in str(refused.value)
    assert "or None for the default partitioner" in str(refused.value)


def test_by_the_key_alone_exactly_one_partition_is_chosen() -> None:
    assert KeyPartitioner(lambda topic, key, value, n: [len(key) % n])("out", "abcd", b"a value", 3) == 1
    assert KeyPartitioner(lambda topic, key, value, n: [len(key) % n])("out", None, b"no foreign key", 3) is None
    assert only_one(lambda topic, key, value, n: value, "out", "k", 3) is None
    for answer, said in (([], "chose no partition for the key 'k'"), ([0, 1], "chose partitions 0, 1 for the key 'k'")):
        with pytest.raises(StreamsError, match=f"{said}, and has to choose exactly one here"):
            only_one(answering(answer), "out", "k", 3)


class ToTheLast(StreamPartitioner):
    def __call__(self) -> None:
        raise AssertionError

    def partitions(self, topic: str, key: Any, value: Any, num_partitions: int) -> int:
        return num_partitions - 1


def test_an_object_is_asked_by_its_method_even_if_it_can_be_called() -> None:
    assert chosen(partition_function(ToTheLast()), "out", "k", "v", 3) == [2]
