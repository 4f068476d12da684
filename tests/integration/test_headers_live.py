"""Headers on a broker: one without a value is written, read again and passed on, by Spark's steps and by Python's."""

from typing import Any

import pytest

from streamskit import Processor, Record, StreamsBuilder
from streamskit.broker.base import Broker
from streamskit.common.errors import BrokerError
from tests.integration.conftest import Run

pytestmark = [pytest.mark.broker, pytest.mark.spark]


class Marking(Processor):
    """Adds a header without a value to each record."""

    def process(self, record: Record) -> None:
        headers: Any = (*record.headers, ("marked", None))
        self.context.forward(record.with_headers(headers))


def test_a_header_without_a_value_goes_through_topics_and_steps_of_both_kinds(
    broker: Broker, run: Run, name: str
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-marked", f"{name}-twice")
    broker.produce(f"{name}-in", [{"key": "k", "value": "v", "timestamp": 1, "headers": [("trace", b"1")]}])
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").process(Marking).to(f"{name}-marked")
    builder.stream(f"{name}-marked").filter(lambda v: v == "v").process(Marking).to(f"{name}-twice")
    run(builder.build()).await_processed("120 seconds")
    once = [("trace", b"1"), ("marked", None)]
    assert list(broker.consume(f"{name}-marked").headers) == [once]
    assert list(broker.consume(f"{name}-twice").headers) == [[*once, ("marked", None)]]


def test_what_the_client_in_python_cannot_send_is_refused_with_a_sentence(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    with pytest.raises(BrokerError, match="the header 'marked' is None, which the client in Python cannot send"):
        broker.produce(name, [{"value": "v", "headers": [("marked", None)]}])
    assert broker.consume(name).empty
