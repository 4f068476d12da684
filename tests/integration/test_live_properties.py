"""Programs and records at random: a running application gives what a test driver gives, however it is cut."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from streamskit.broker import Broker
from tests.integration.live_outcomes import difference
from tests.integration.live_vectors import QUEUE_SECONDS, Bench
from tests.integration.random_programs import PROGRAMS, RECORDS, RandomProgram, replayed

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(3000)]

AT_ONCE = 4
"""How many programs of an example run beside each other: a running application waits most of the time."""

CASES = st.lists(
    st.tuples(PROGRAMS, RECORDS, st.sampled_from(["whole", "each", "random 1", "random 2"])),
    min_size=AT_ONCE,
    max_size=AT_ONCE,
    unique_by=lambda case: case[0].end[0],
)

# To look for a smaller example of a failure would take an hour.
unhurried = settings(deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate],
                     suppress_health_check=list(HealthCheck))  # fmt: skip


@pytest.fixture(scope="module")
def bench(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(broker, tmp_path_factory.mktemp("random"))
    yield bench
    bench.close()


_count = iter(range(10**6))


def check(bench: Bench, cases: list[tuple[RandomProgram, list[dict[str, Any]], str]]) -> None:
    """Run programs beside each other, and compare each with a test driver."""
    vectors = [replayed(program, records) for program, records, _ in cases]
    runs = [
        bench.run_made(f"random-{next(_count)}.", program.topology(), vector, how)
        for (program, _, how), vector in zip(cases, vectors, strict=True)
    ]
    for (program, records, how), vector, run in zip(cases, vectors, runs, strict=True):
        said = difference(vector, run.result(QUEUE_SECONDS), ["failure", "outputs", "stores", "dropped"])
        assert said == "", f"{program!r}\n{records}\ncut: {how}\n{said}"


@settings(unhurried, max_examples=1, derandomize=True)
@given(CASES)
def test_a_few_random_programs_run_as_in_the_test_driver(bench: Bench, cases: Any) -> None:
    check(bench, cases)


@pytest.mark.soak
@settings(unhurried, max_examples=40)
@given(CASES)
def test_random_programs_run_as_in_the_test_driver(bench: Bench, cases: Any) -> None:
    check(bench, cases)
