"""Stream threads: how many tasks of a query run at a time, at the start and changed while it runs."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streamskit.broker import Broker
from tests.integration.own_process import seen_by

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.soak]  # lesson 13 does it in `make test`


@pytest.mark.timeout(900)
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_no_more_tasks_run_at_a_time_than_there_are_stream_threads_and_a_change_loses_and_doubles_nothing(
    guarantee: str, broker: Broker, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=4)
    arguments = broker.bootstrap_servers, name, str(state_dir), guarantee
    said: list[tuple[str, Any]] = seen_by("stream_threads_program", *arguments, seconds=880)
    seen = dict(said)

    for number in (1, 2, 4):
        of_number = seen[str(number)]
        assert of_number["records"] == number  # as many, and not fewer: they run side by side
        assert max(of_number["tasks"].values()) <= number
        assert (of_number["slots"], of_number["explained"]) == ([number], True)
    for without in ("none", "none again"):
        assert (seen[without]["records"], seen[without]["slots"], seen[without]["explained"]) == (4, [0], False)

    names = [f"{name}-StreamThread-{number}" for number in (2, 3, 4)]
    assert [value for what, value in said if what == "added"] == names
    assert [value for what, value in said if what == "removed"] == names[::-1]
    assert len(seen["changing"]["slots"]) > 1
    assert {each["restarts"] for each in seen.values() if "restarts" in each} == {0}

    end = seen["end"]
    assert end["written"] == list(range(end["sent"]))
    assert end["seen"] == [1]
    assert end["counts"] == Counter(f"g{number % 3}" for number in range(end["sent"]))
