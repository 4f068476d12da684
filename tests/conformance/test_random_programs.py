"""Programs made up at random give what Kafka Streams gave: recorded by `tests.java.random_programs`."""

import json
from typing import Any

import pytest

from tests.conformance.random_programs import RECORDED, differences, outcome

ROWS = [json.loads(line) for line in RECORDED.read_text().splitlines()]


@pytest.mark.spark
@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in ROWS])
def test_a_random_program_gives_what_kafka_streams_gave(row: dict[str, Any]) -> None:
    assert differences(row["outcome"], outcome(row["program"])) == []
