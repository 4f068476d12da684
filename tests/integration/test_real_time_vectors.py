"""Every recorded vector whose state Spark's real-time mode can keep: each record's update goes out by itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamskit.broker import Broker
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan
from tests.conformance.programs import PROGRAMS, SETTINGS
from tests.conformance.test_vectors import VECTORS
from tests.integration.live_outcomes import difference
from tests.integration.live_vectors import AS_THEY_COME, REAL_TIME
from tests.integration.real_time_vectors import outcome
from tests.integration.test_live_vectors import DIFFERENCES, NOT_LIVE

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(1200)]

IN_REAL_TIME = (
    "basic-aggregate",
    "basic-group-by-count",
    "basic-group-by-key-count",
    "basic-merge-rekeyed-count",
    "basic-reduce",
    "basic-word-count",
    "joins-stream-stream-self-left",
    "joins-stream-table-own-count",
    "ktable-cache-off",
    "ktable-cache-on",
    "ktable-cache-small",
    "ktable-chain-materialized",
    "ktable-filter-then-count",
    "ktable-group-by-aggregate",
    "ktable-group-by-count",
    "ktable-group-by-reduce",
    "ktable-group-by-windowed",
    "ktable-suppress-max-records",
    "ktable-suppress-time-limit",
    "ktable-transform-values",
    "ktable-versioned-source",
    "processor-fixed-key",
    "processor-forward-to-child",
    "processor-key-value-store",
    "processor-lru-store",
    "processor-pos-rewards",
    "processor-punctuate-stream-time",
    "processor-punctuate-two",
    "processor-timestamped-store",
    "processor-versioned-store",
    "queries-key-value",
    "queries-versioned",
    "queries-versions",
    "queries-window",
    "time-filter-before-window",
    "time-out-of-order-count",
    "time-payload-extractor",
    "time-processor-timestamp-window",
    "time-stream-time",
    "time-use-partition-time-unknown",
    "windows-group-by-count",
    "windows-hopping-count",
    "windows-hopping-count-cached",
    "windows-hopping-trade-stats",
    "windows-session-aggregate",
    "windows-session-count",
    "windows-session-emit-on-close",
    "windows-session-emit-on-close-default-retention",
    "windows-session-reduce-nulls",
    "windows-sliding-count",
    "windows-sliding-emit-on-close",
    "windows-sliding-reversed",
    "windows-sliding-suppress",
    "windows-tumbling-count",
    "windows-tumbling-emit-on-close",
    "windows-tumbling-emit-on-close-default-retention",
    "windows-tumbling-reduce",
    "windows-tumbling-suppress",
    "windows-tumbling-suppress-full",
    "windows-tumbling-suppress-time-limit",
    "windows-unlimited-count",
)
"""The vectors whose programs keep state, and run in real-time mode as a whole."""

OF_SEVERAL_TOPICS = (
    "examples-music-charts",
    "joins-stream-stream-asymmetric",
    "joins-stream-stream-inner",
    "joins-stream-stream-inner-grace",
    "joins-stream-stream-inner-retention",
    "joins-stream-stream-left",
    "joins-stream-stream-left-before-after-grace",
    "joins-stream-stream-outer-asymmetric",
    "joins-stream-stream-outer-grace",
    "joins-stream-table-grace",
    "joins-stream-table-inner",
    "joins-stream-table-left",
    "joins-stream-table-left-grace",
    "joins-stream-table-rekeyed-inner",
    "joins-stream-table-repartitioned-null-key",
    "joins-stream-table-versioned",
    "joins-table-table-filtered-left",
    "joins-table-table-foreign-key",
    "joins-table-table-foreign-key-then-count",
    "joins-table-table-foreign-key-versioned",
    "joins-table-table-inner",
    "joins-table-table-not-materialized",
    "joins-table-table-outer",
    "joins-table-table-versioned-left",
    "processor-reads-aggregate",
    "processor-table-store",
    "windows-cogroup-session",
    "windows-cogroup-tumbling",
)
"""The vectors whose programs run in real-time mode where no topic waits for another."""

OTHERWISE = {
    "basic-aggregate-same-stream-twice": "Spark's count and Python's aggregate are two queries that write one topic",
    "ktable-cache-group-by": "there is no cache, in which a group could come and go unseen",
    "errors-forward-negative-timestamp": "its handler is a function, which is refused when the application starts",
    "errors-processing-punctuation": "its handler is a function, which is refused when the application starts",
}
"""Vectors whose programs fit, and which do not come out as recorded, and why."""

SPREAD = {
    "ktable-group-by-reduce",
    "processor-punctuate-stream-time",
    "windows-session-count",
    "windows-tumbling-suppress",
    "basic-merge-rekeyed-count",
    "queries-window",
    "time-out-of-order-count",
    "windows-group-by-count",
    "windows-hopping-trade-stats",
}
"""What `make test` runs of them; `make soak` runs all."""


@pytest.fixture(scope="module")
def outcomes(broker: Broker, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The folder with what came of all that this session asks for."""
    folder = tmp_path_factory.mktemp("real-time")
    asked = [item.callspec.params.get("vector") for item in request.session.items if hasattr(item, "callspec")]
    names = {name for name in asked if isinstance(name, str)}
    command = [sys.executable, "-m", "tests.integration.real_time_vectors", broker.bootstrap_servers, str(folder)]
    for how, group in ((REAL_TIME, IN_REAL_TIME), (AS_THEY_COME, OF_SEVERAL_TOPICS)):
        if chosen := sorted(names.intersection(group)):
            subprocess.run([*command, how, *chosen], check=True, timeout=1000, env=os.environ)
    return folder


@pytest.mark.parametrize(
    "vector", [pytest.param(name, marks=[] if name in SPREAD else [pytest.mark.soak]) for name in IN_REAL_TIME]
)
def test_real_time_mode_gives_what_kafka_streams_gave_without_its_cache(vector: str, outcomes: Path) -> None:
    recorded = json.loads((VECTORS / f"{vector}.json").read_text())
    was_cached = SETTINGS.get(vector, {}).get("cache", False)
    points = ("tables" if was_cached else "outputs", "stores", "dropped", "side effects by kind", "failure")
    assert difference(recorded, outcome(outcomes / f"{vector}.json"), points) == ""


@pytest.mark.soak
@pytest.mark.parametrize("vector", OF_SEVERAL_TOPICS)
def test_joins_in_real_time_that_wait_for_no_topic_give_what_kafka_streams_gave(vector: str, outcomes: Path) -> None:
    recorded = json.loads((VECTORS / f"{vector}.json").read_text())
    points = ("outputs", "stores", "dropped", "side effects by kind", "failure")
    assert difference(recorded, outcome(outcomes / f"{vector}.json"), points) == ""


@pytest.mark.soak
def test_random_programs_in_real_time_mode_do_what_a_test_driver_does(broker: Broker) -> None:
    command = [sys.executable, "-m", "tests.integration.random_real_time", broker.bootstrap_servers, "2611", "24"]
    run = subprocess.run(command, check=False, timeout=1100, env=os.environ, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    assert [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")] == [{"programs": 24}]


@pytest.mark.usefixtures("spark")
def test_these_are_all_vectors_whose_state_can_be_kept_in_real_time() -> None:
    every = {*PROGRAMS} - {*NOT_LIVE, *DIFFERENCES}
    found = {name for name in every if keeps_state_in_real_time(name, QueryOptions(real_time=True))}
    assert found == {*IN_REAL_TIME, *OTHERWISE}
    waiting_for_none = QueryOptions(real_time=True, as_they_come=True)
    assert {name for name in every - found if keeps_state_in_real_time(name, waiting_for_none)} == {*OF_SEVERAL_TOPICS}


def keeps_state_in_real_time(name: str, options: QueryOptions) -> bool:
    """Return whether the program of a vector keeps state and can run in real-time mode as a whole."""
    plans = plan(PROGRAMS[name](), "app", options)
    return all(each.fits_real_time for each in plans) and any(each.is_stateful for each in plans)
