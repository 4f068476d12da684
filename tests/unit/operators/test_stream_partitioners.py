"""Partitioners of sinks, called record by record: what becomes of their answers and failures."""

from typing import Any

import pytest

from streamskit import LogAndContinue, StreamsError
from streamskit.api.error_handlers import Handlers
from streamskit.operators.partitioning import Choice, SinkPartitioner, StreamPartitioners
from streamskit.serdes import Serdes

CONTINUE = Handlers(processing=LogAndContinue(), production=LogAndContinue())


def choose(answer: Any, handlers: Handlers = CONTINUE, topic: str = "out") -> Choice:
    def partition(*asked: Any) -> Any:
        assert asked == (topic, "k", 5, 3)
        if isinstance(answer, Exception):
            raise answer
        return answer

    sinks = {"sink": SinkPartitioner(partition, Serdes.string(), Serdes.long())}
    partitioners = StreamPartitioners(sinks, {"out": 3}, "nowhere:1", handlers)
    return partitioners.choose("sink", topic, b"k", (5).to_bytes(8, "big"))


def test_a_partitioner_is_given_values_and_its_choice_is_taken() -> None:
    assert choose([2, 0]) == Choice([0, 2])
    assert choose([]) == Choice([])
    assert choose(None) == Choice(None)


def test_what_goes_to_a_partition_that_is_not_there_could_not_be_written() -> None:
    said = "the partitioner chose partition 7 of topic 'out', whose 3 partitions are numbered from 0 to 2."
    assert choose([1, 7]) == Choice([1], f"UnknownTopicOrPartitionException: {said}", "production")
    with pytest.raises(StreamsError, match="the partitioner chose partition 7") as refused:
        choose([1, 7], Handlers(processing=LogAndContinue()))
    assert '"operator": "sink"' in refused.value.__notes__[0]


def test_a_partitioner_that_fails_is_a_failure_of_processing() -> None:
    assert choose(KeyError("x")) == Choice([], "KeyError: 'x'", "processing")
    kind = choose(-1).kind
    assert kind == "processing"
    with pytest.raises(KeyError) as raised:
        choose(KeyError("x"), Handlers(production=LogAndContinue()))
    assert '"operator": "sink"' in raised.value.__notes__[0]


def test_a_topic_that_was_made_later_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def list_topics(bootstrap_servers: str, internal: bool) -> dict[str, int]:
        asked.append(bootstrap_servers)
        return {"later": 3}

    monkeypatch.setattr("streamskit.kafka.topics.list_topics", list_topics)
    monkeypatch.setattr("streamskit.operators.partitioning._later", {})
    assert choose(1, topic="later") == choose(1, topic="later") == Choice([1])
    assert asked == ["nowhere:1"]
    missing = choose(1, topic="missing").error
    said = "there is no topic 'missing', so its number of partitions is unknown. Create it first."
    assert missing == f"streamskit.common.errors.StreamsError: {said}"
