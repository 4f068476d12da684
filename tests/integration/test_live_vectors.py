"""Every recorded vector that a running application can show, in micro-batches that are cut in three ways."""

from collections.abc import Iterator

import pytest

from streamskit.broker import Broker
from streamskit.environment.session import settings, spark_session
from tests.conformance.programs import PROGRAMS
from tests.conformance.registry import SETTINGS
from tests.integration.live_outcomes import difference, difference_of_tasks, of_tasks
from tests.integration.live_vectors import COMPILED, Bench, Run, starting

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(3000)]

CUTS = ("whole", "each", "random 1")

NOT_LIVE = {
    "errors-build-naming": "its topology is refused as it is built, so that no record flows",
    "errors-build-store-not-connected": "its topology is refused as it is planned, so that no record flows",
    "joins-stream-stream-left-throttled": "its results wait for a wall clock that only a test driver can move",
    "processor-punctuate-wall-clock": "its results wait for a wall clock that only a test driver can move",
    "windows-tumbling-emit-on-close-throttled": "its results wait for a wall clock that only a test driver can move",
    "processor-record-metadata": "its results tell a wall clock that only a test driver can move",
}
"""Vectors that no running application can show, and why."""

LATEST = "a row that changes while its subscription travels answers for the latest value"

FOLDED = {
    "ktable-cache-on": "the cache folds the updates of a key in a micro-batch",
    "ktable-cache-small": "the cache is flushed when it is full, and at the end of a micro-batch",
    "windows-hopping-count-cached": "the cache folds the updates of a key in a micro-batch",
    "windows-hopping-trade-stats": "Spark's own aggregations fold the updates of a key in a micro-batch",
    "joins-table-table-foreign-key-then-count": LATEST,
    "joins-table-table-foreign-key-versioned": LATEST,
    "joins-table-table-foreign-key": LATEST,
}
"""Vectors that an application shows one record at a time only, and why; what they end with is the same in any case."""

ONE_BY_ONE = {"ktable-cache-group-by": "a row that comes and goes within a micro-batch leaves no group behind"}
"""Vectors that an application shows one record at a time only, as a cache also changes what it ends with."""

IN_ANY_ORDER = {"windows-hopping-count-cached", "windows-hopping-trade-stats"}
"""Vectors of Spark's own aggregations, which update the windows of a record in any order."""

DIFFERENCES: dict[str, str] = {
    "joins-stream-table-left-grace-null-key": "Kafka Streams fails on a record that a left join promises to keep"
}
"""Vectors that a running application does not follow, and why."""

SPREAD = {
    "basic-aggregate": "whole",
    "basic-flat-map": "whole",
    "basic-two-topics-one-stream": "whole",
    "examples-music-charts": "whole",
    "joins-stream-global-inner": "random 1",
    "joins-stream-stream-outer-grace": "whole",
    "joins-stream-table-left": "random 1",
    "joins-table-table-inner": "random 1",
    "ktable-group-by-reduce": "each",
    "ktable-suppress-time-limit": "whole",
    "processor-punctuate-stream-time": "whole",
    "time-payload-extractor": "whole",
    "windows-session-count": "random 1",
    "windows-tumbling-count": "whole",
}
"""What `make test` runs of them; `make soak` runs all."""


def params() -> Iterator[object]:
    for name in sorted({*PROGRAMS} - {*NOT_LIVE}):
        for how in CUTS if name not in ONE_BY_ONE else ["each"]:
            marks = [] if SPREAD.get(name) == how else [pytest.mark.soak]
            if name in DIFFERENCES:
                marks.append(pytest.mark.xfail(reason=DIFFERENCES[name], strict=True))
            yield pytest.param(Run(name, how), marks=marks, id=f"{name}-{how.replace(' ', '-')}")


def of_one_sub_topology() -> list[str]:
    """Return the vectors whose tasks do not hear of each other, and which tell no numbers of partitions."""
    names = []
    for name in sorted({*PROGRAMS} - {*NOT_LIVE, *FOLDED, *ONE_BY_ONE, *DIFFERENCES}):
        vector = Run(name, "whole").vector
        if not (vector.get("errors") or vector.get("side_effects")) and vector["topology"].count("Sub-topology") == 1:
            names.append(name)
    return names


@pytest.fixture(scope="module")
def bench(broker: Broker, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Runs all that this session asks for, several beside each other."""
    bench = Bench(broker, tmp_path_factory.mktemp("live"))
    asked = [item.callspec.params.get("live") for item in request.session.items if hasattr(item, "callspec")]
    with settings(spark_session(), COMPILED):
        bench.submit(run for run in asked if isinstance(run, Run))
        yield bench
        bench.close()


@pytest.mark.parametrize("live", list(params()))
def test_a_running_application_gives_what_kafka_streams_gave(live: Run, bench: Bench) -> None:
    assert difference(live.vector, bench.outcome(live), points(live)) == ""


def points(live: Run) -> list[str]:
    """Return in which points a run has to be like its vector."""
    if live.how == "each":
        return [
            "outputs by key" if live.name in IN_ANY_ORDER else "outputs",
            "stores",
            "dropped",
            "side effects by kind",  # the calls of each function are in order, those of two of them are not
            "failure",
        ]
    if live.vector.get("errors"):  # a micro-batch that fails writes nothing
        return ["failure"]
    if live.name in FOLDED:
        return ["tables", "rows", "failure"]
    return ["outputs", "stores", "dropped", "side effects by kind", "failure"]


@pytest.mark.soak
@pytest.mark.parametrize("live", [Run(name, "random 2", 3) for name in of_one_sub_topology()], ids=str)
def test_on_three_partitions_each_task_gives_what_it_gives_alone(live: Run, bench: Bench) -> None:
    with starting:
        wanted = of_tasks(live.vector, live.partitions)
    assert difference_of_tasks(live.vector, bench.outcome(live), wanted) == ""


def test_every_exception_has_a_program() -> None:
    assert not {*NOT_LIVE, *FOLDED, *ONE_BY_ONE, *DIFFERENCES, *SPREAD} - {*PROGRAMS}
    assert not {*SPREAD} & {*NOT_LIVE}
    assert {name for name, settings in SETTINGS.items() if settings.get("cache")} <= {*FOLDED, *ONE_BY_ONE}
