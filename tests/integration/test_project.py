"""A project of a learner's own: the one that `new` makes holds what it has to, and mistakes are found."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamskit import LogAndContinue, Serdes, StreamsBuilder, StreamsConfig, Topology
from streamskit.course.project import judging
from streamskit.course.project.judging import Project
from streamskit.course.project.new import create
from streamskit.environment.diagnosis import Check

pytestmark = pytest.mark.spark

SALE = Serdes.json("shop string, amount double")
RECORDS = [("sales", shop, {"shop": shop, "amount": 2.0}, 1_000 * place) for place, shop in enumerate("abcab")]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What a project's package brings along is of one test only."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("page_visits"):
            del sys.modules[name]


def totals(adder: Callable[..., float], store: str | None = "totals") -> Callable[[], Topology]:
    """An application that adds up sales, with an adder of its own."""

    def build() -> Topology:
        builder = StreamsBuilder()
        sums = builder.stream("sales", value=SALE).group_by_key().aggregate(
            lambda: 0.0, adder, store, value=Serdes.double()
        )  # fmt: skip
        sums.to_stream().to("totals-out")
        return builder.build()

    return build


def config(servers: str) -> StreamsConfig:
    return StreamsConfig(application_id="sales", bootstrap_servers=servers, deserialization_handler=LogAndContinue())


def add(key: str, sale: dict[str, float], total: float) -> float:
    return total + sale["amount"]


def judged(
    name: str,
    build: Callable[[], Topology],
    config: Callable[[str], StreamsConfig] = config,
    records: list[tuple[str, str, dict[str, object], int]] = RECORDS,
) -> Check:
    return judging._examined(name, judging.CHECKS[name], Project(Path(), build, config, records))


@pytest.mark.soak
def test_a_new_project_passes_its_own_tests_and_all_checks(tmp_path: Path) -> None:
    folder = create("page-visits", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "streamskit", "check-project", str(folder)],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    wanting = [line.split()[2] for line in done.stdout.splitlines() if line.startswith(("!", "✗"))]
    assert wanting == ["Topology", "README"]  # what a learner has to write


@pytest.mark.parametrize("name", ["Topology", "Garbage", "Nulls"])
def test_an_application_of_another_kind_holds_it_too(name: str) -> None:
    assert judged(name, totals(add)).status == "ok"
