"""Programs and records at random: a running application gives what a test driver gives, however it is cut."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from streamskit.broker import Broker
from tests.conformance.random_programs import Program, handlers_of, topology_of
from tests.integration.live_outcomes import difference
from tests.integration.live_vectors import QUEUE_SECONDS, Bench
from tests.integration.random_programs import live_programs, replayed

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(3000)]

AT_ONCE = 4
"""How many programs of an example run beside each other: a running application waits most of the time."""

CASES = st.lists(live_programs(), min_size=AT_ONCE, max_size=AT_ONCE)

# To look for a smaller example of a failure would take an hour.
unhurried = settings(deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate],
                     suppress_health_check=list(HealthCheck))  # fmt: skip


@pytest.fixture(scope="module")
def bench(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(broker, tmp_path_factory.mktemp("random"))
    yield bench
    bench.close()


_count = iter(range(10**6))


def check(bench: Bench, cases: list[tuple[Program, str]]) -> None:
    """Run programs beside each other, and compare each with a test driver."""
    vectors = [replayed(program) for program, _ in cases]
    runs = [
        bench.run_made(f"random-{next(_count)}.", topology_of(program), vector, how, handlers_of(program))
        for (program, how), vector in zip(cases, vectors, strict=True)
    ]
    for (program, how), vector, run in zip(cases, vectors, runs, strict=True):
        said = difference(vector, run.result(QUEUE_SECONDS), ["failure", "outputs", "stores", "dropped"])
        assert said == "", f"{json.dumps(program)}\ncut: {how}\n{said}"


@settings(unhurried, max_examples=1, derandomize=True)
@given(CASES)
def test_a_few_random_programs_run_as_in_the_test_driver(bench: Bench, cases: list[tuple[Program, str]]) -> None:
    check(bench, cases)


@pytest.mark.soak
@settings(unhurried, max_examples=40)
@given(CASES)
def test_random_programs_run_as_in_the_test_driver(bench: Bench, cases: list[tuple[Program, str]]) -> None:
    check(bench, cases)
