"""What is said before an application's queries start."""

import logging
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from streamskit import Serdes, StreamsBuilder, StreamsError
from streamskit.broker import ExternalBroker
from streamskit.kafka.topics import Topic, TopicExtent
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.recovery.data_loss import DataLoss
from streamskit.runtime.startup_checks import StartupChecks
from streamskit.runtime.topics import ApplicationTopics

LINE = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="hush";'
SASL = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": LINE}
ELSEWHERE = "spark://spark.example.org:7077"


def said(caplog: pytest.LogCaptureFixture, folder: Path, settings: Any, master: str) -> str:
    checks = StartupChecks(
        folder, ApplicationTopics("app", []), ExternalBroker("b:9", settings), DataLoss("app", folder, "stop")
    )
    with caplog.at_level(logging.WARNING, "streamskit"):
        checks.warn_of_files(master)
    return caplog.text


def test_executors_elsewhere_do_not_find_the_file_of_a_dict(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = said(caplog, tmp_path, SASL, ELSEWHERE)
    assert f"Spark runs elsewhere, on {ELSEWHERE}, and its executors look for the client settings in " in text
    assert "-client.properties, a file that only this machine has." in text
    assert "hush" not in text


@pytest.mark.parametrize(
    ("settings", "master"),
    [(SASL, "local[4]"), (SASL, "spark://127.0.0.1:7077"), (None, ELSEWHERE), ({"client.id": "me"}, ELSEWHERE)],
)
def test_nothing_is_said_where_no_executor_lacks_a_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: Any, master: str
) -> None:
    assert said(caplog, tmp_path, settings, master) == ""


def test_nothing_is_said_of_a_users_own_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in SASL.items()))
    assert said(caplog, tmp_path, file, ELSEWHERE) == ""


# Sub-topologies that ran as other queries.


def checks(folder: Path, more: bool = False, cache: bool = True) -> StartupChecks:
    """Return the checks of a program with a count of Spark's own, which is a query alone, and perhaps one more sink."""
    builder = StreamsBuilder()
    numbers = builder.stream("in", value=Serdes.long())
    numbers.group_by_key().count("counts")
    if more:
        numbers.to("out")
    plans = plan(builder.build(), "app", QueryOptions(cache))
    topics = ApplicationTopics("app", plans)
    return StartupChecks(folder, topics, ExternalBroker("b:9"), DataLoss("app", folder, "stop"))


def run_once(folder: Path, **program: Any) -> list[str]:
    """Compare, and note that all queries of a program have begun; return their names."""
    first = checks(folder, **program)
    first.compare(defaultdict(lambda: 1))
    first.note()
    names = list(first._checkpoints)
    for name in names:
        for log in ("offsets", "commits"):
            (folder / name / log).mkdir(exist_ok=True)
            (folder / name / log / "0").write_text("v1\n{}\n{}")
        (folder / name / "metadata").write_text('{"id":"x"}')
        assert Checkpoint(folder / name).has_begun
    return names


@pytest.mark.parametrize(("before", "now"), [(False, True), (True, False)])
def test_a_sub_topology_that_runs_as_other_queries_than_before_is_refused(
    tmp_path: Path, before: bool, now: bool
) -> None:
    names = run_once(tmp_path, more=before)
    with pytest.raises(StreamsError, match=r"Sub-topology 0 of 'app' ran as query 0\S* when it was started last") as no:
        checks(tmp_path, more=now).compare(defaultdict(lambda: 1))
    assert "begin anew: clean_up()" in str(no.value)
    assert len(names) == (2 if before else 1)


def test_a_sub_topology_that_runs_as_the_same_queries_goes_on(tmp_path: Path) -> None:
    run_once(tmp_path, more=True)
    checks(tmp_path, more=True).compare(defaultdict(lambda: 1))


def test_a_sub_topology_of_which_nothing_had_begun_may_run_as_other_queries(tmp_path: Path) -> None:
    first = checks(tmp_path)
    first.compare(defaultdict(lambda: 1))
    first.note()
    checks(tmp_path, more=True).compare(defaultdict(lambda: 1))


# A first batch in real-time mode that was not finished.


@pytest.mark.parametrize("deleted_since", [0, 3])
def test_a_first_batch_begins_again_if_what_is_gone_was_gone_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deleted_since: int
) -> None:
    first = {0: 5}
    held = {"in": TopicExtent("id", first, {0: 20})}
    monkeypatch.setattr("streamskit.runtime.startup_checks.extents", lambda servers, names: held)
    monkeypatch.setattr(ExternalBroker, "describe_topic", lambda self, name: Topic(name, 1, {}))
    forgotten = list[bool]()

    def start() -> None:
        now = checks(tmp_path)
        now.compare(defaultdict(lambda: 1))
        now.prepare(lambda: {"in": 1}, lambda: forgotten.append(True), lambda extents: "")
        now.note()

    start()
    Checkpoint(tmp_path / "0").begin_run(in_real_time=True)
    assert not forgotten
    first[0] += deleted_since
    if deleted_since:
        with pytest.raises(StreamsError, match="3 records of topic 'in', partition 0, have been deleted since"):
            start()
    else:
        start()
    assert forgotten == [True][deleted_since:]
