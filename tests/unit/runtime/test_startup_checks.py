"""What is said before an application's queries start."""

import logging
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamskit import Serdes, StreamsBuilder, StreamsError
from streamskit.api.streams_config import StreamsConfig
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


def config(folder: Path, **settings: Any) -> StreamsConfig:
    """Return a config of an application with this folder."""
    return StreamsConfig(folder.name, "b:9", state_dir=folder.parent, **settings)


def said(caplog: pytest.LogCaptureFixture, folder: Path, settings: Any, master: str) -> str:
    checks = StartupChecks(
        config(folder), ApplicationTopics("app", []), ExternalBroker("b:9", settings), DataLoss("app", folder, "stop")
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


def checks(
    folder: Path, more: bool = False, cache: bool = True, real_time: bool = False, **settings: Any
) -> StartupChecks:
    """Return the checks of a program with a count of Spark's own, which is a query alone, and perhaps one more sink."""
    builder = StreamsBuilder()
    numbers = builder.stream("in", value=Serdes.long())
    numbers.group_by_key().count("counts")
    if more:
        numbers.to("out")
    plans = plan(builder.build(), "app", QueryOptions(cache, 1000 * cache, real_time=real_time))
    topics = ApplicationTopics("app", plans)
    return StartupChecks(config(folder, **settings), topics, ExternalBroker("b:9"), DataLoss("app", folder, "stop"))


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


WITH, WITHOUT = {"cache": True}, {"cache": False}
IN_REAL_TIME = {"cache": False, "real_time": True}


@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (WITH, WITHOUT, "it had a record cache, and has none now. Leave statestore_cache_max_bytes=0 out"),
        (WITHOUT, WITH, "it had no record cache, and has one now. Set statestore_cache_max_bytes=0 again"),
        (WITHOUT, IN_REAL_TIME, "it ran in micro-batches, and would run in real-time mode now. Choose real_time='off'"),
    ],
)
def test_a_setting_that_lets_others_keep_the_state_is_named(
    tmp_path: Path, before: dict[str, bool], now: dict[str, bool], told: str, more: bool
) -> None:
    run_once(tmp_path, more=more, **before)
    with pytest.raises(StreamsError, match="A setting of 'app' has changed") as refused:
        checks(tmp_path, more=more, **now).compare(defaultdict(lambda: 1))
    assert told in str(refused.value)
    checks(tmp_path, more=more, **before).compare(defaultdict(lambda: 1))


def test_an_application_that_ran_in_real_time_mode_hears_which_setting_ended_that(tmp_path: Path) -> None:
    run_once(tmp_path, **IN_REAL_TIME)
    (tmp_path / "0" / "commits" / "0").write_text("v2\n{}")  # its state has ids
    why = "in micro-batches, because num_stream_threads limits Spark's slots"
    with pytest.raises(StreamsError, match="A setting of 'app' has changed") as refused:
        checks(tmp_path, **WITHOUT).compare(defaultdict(lambda: 1), why)
    assert f"it ran in real-time mode, and would run {why}. Start it with the settings that it had" in str(
        refused.value
    )


def test_a_changed_program_is_not_told_as_a_setting(tmp_path: Path) -> None:
    run_once(tmp_path)
    with pytest.raises(StreamsError) as refused:
        checks(tmp_path, more=True).compare(defaultdict(lambda: 1))
    assert "A setting of" not in str(refused.value)


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
        now.prepare(lambda: {"in": 1}, lambda: forgotten.append(True), lambda extents, why: "")
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


# An application whose folder is gone, and the copies of its checkpoints, too.


@pytest.mark.parametrize("reset", ["earliest", "latest", "none", "by_duration:PT60S"])
def test_only_a_program_that_reads_its_topics_from_the_beginning_begins_anew_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reset: str
) -> None:
    held = {topic: TopicExtent("id", {0: 0}, {0: 20}) for topic in ("in", "app-counts-changelog")}
    monkeypatch.setattr("streamskit.runtime.startup_checks.extents", lambda servers, names: held)
    monkeypatch.setattr(ExternalBroker, "describe_topic", lambda self, name: Topic(name, 1, {}))
    forgotten = list[bool]()
    now = checks(tmp_path, auto_offset_reset=reset)
    now.compare(defaultdict(lambda: 1))
    prepare = partial(now.prepare, lambda: {"in": 1}, lambda: forgotten.append(True), lambda extents, why: "")
    if reset == "earliest":
        prepare()
    else:
        with pytest.raises(StreamsError, match=f"has auto_offset_reset='{reset}', and would leave out records of in"):
            prepare()
    assert forgotten == [True] * (reset == "earliest")


def test_a_first_batch_of_a_program_that_begins_behind_what_is_there_begins_where_its_policy_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    held = {"in": TopicExtent("id", {0: 0}, {0: 20})}
    monkeypatch.setattr("streamskit.runtime.startup_checks.extents", lambda servers, names: held)
    monkeypatch.setattr(ExternalBroker, "describe_topic", lambda self, name: Topic(name, 1, {}))
    Checkpoint(tmp_path / "0").begin_run(in_real_time=True)
    now = checks(tmp_path, auto_offset_reset="latest")
    now.compare(defaultdict(lambda: 1))
    now.prepare(lambda: {"in": 1}, lambda: None, lambda extents, why: "")
    assert "all its topics are read from where auto_offset_reset says" in caplog.text
