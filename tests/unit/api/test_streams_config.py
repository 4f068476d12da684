"""`StreamsConfig`: its keys, their values, and the properties files it is read from and written to."""

import dataclasses
import inspect
import logging
import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import streamskit
from streamskit import KafkaStreams, LogAndContinue, LogAndFail, Response, StreamsBuilder, StreamsConfig, Topology
from streamskit.api.client_settings import ClientSettings
from streamskit.api.config_keys import FOREIGN, ConfigKey
from streamskit.api.streams_config import StreamsSettings
from streamskit.common.errors import StreamsError, TopologyError
from streamskit.common.paths import application_folder
from streamskit.common.secret import Secret
from streamskit.kafka.client_libraries import for_java
from streamskit.planning.planner import plan
from streamskit.runtime.query import query_options
from streamskit.runtime.spark_io import _transactions

KAFKAS = {"application.id": "app", "bootstrap.servers": "localhost:9"}
KEYS = StreamsConfig.settings()


def config(**settings: Any) -> StreamsConfig:
    return StreamsConfig.of("app", "localhost:9", **settings)


def topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    return builder.build()


# ---- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS, ids=[key.name for key in KEYS])
def test_each_key_is_documented(key: ConfigKey) -> None:
    assert len(key.doc.split()) > 4
    assert key.doc.endswith(".")
    assert f"        {key.name}: {key.doc} (" in str(StreamsConfig.__doc__)
    assert f"`{key.kafka_name}`" in str(StreamsConfig.__doc__)


def test_each_key_has_its_name_in_kafka_in_snake_case_or_says_that_it_is_of_this_project() -> None:
    shorter = {"deserialization_handler", "processing_handler", "production_handler"}
    for key in KEYS:
        snake = key.kafka_name.removeprefix("streamskit.").replace(".", "_")
        if key.name != "max_task_idle_ms":  # a number, as -1 is no duration
            snake = snake.removesuffix("_ms")
        assert key.name == (snake.replace("_exception", "") if key.name in shorter else snake)
    assert [key.name for key in KEYS if not key.is_kafkas] == [
        "emit_interval", "real_time", "max_records_per_batch", "on_data_loss", "listen", "token", "client_settings",
    ]  # fmt: skip


def test_the_keys_are_keywords_with_the_types_of_the_fields() -> None:
    needed = {"application_id", "bootstrap_servers"}
    fields = {name: kind for name, kind in get_type_hints(StreamsConfig).items() if name not in needed}
    assert get_type_hints(StreamsSettings) == fields
    assert {*needed, *fields} == {key.name for key in KEYS}


def test_a_notebook_shows_the_keys_at_the_constructor() -> None:
    assert [*inspect.signature(StreamsConfig).parameters] == [key.name for key in KEYS]


def test_durations_are_kept_in_milliseconds_and_say_so() -> None:
    made = config(commit_interval="5 seconds", task_timeout=timedelta(minutes=1), session_timeout=45_000)
    assert (made.commit_interval, made.task_timeout, made.session_timeout) == (5_000, 60_000, 45_000)
    assert made == config(commit_interval=5_000, task_timeout="1 minute", session_timeout="45 s")
    assert made.milliseconds("task_timeout") == 60_000
    assert {key.unit for key in KEYS if key.name.endswith(("interval", "timeout", "time"))} == {"milliseconds"}


def test_a_config_is_frozen_can_be_changed_in_a_copy_and_travels() -> None:
    made = config(num_standby_replicas=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.num_standby_replicas = 2  # type: ignore[misc]
    assert dataclasses.replace(made, num_standby_replicas=2).num_standby_replicas == 2
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_token_is_not_shown(tmp_path: Path) -> None:
    made = config(token="hush")
    for shown in (repr(made), str(made.as_properties()), f"{made.token}", str(dataclasses.asdict(made))):
        assert "hush" not in shown
    assert made.token_text == "hush"
    assert config().token_text is None
    assert dataclasses.replace(made, num_standby_replicas=1).token == made.token
    with pytest.raises(StreamsError, match=r"token is of type int; give text, such as 'a long secret'\.") as failure:
        config(token=12345678)
    assert "1234" not in str(failure.value)


def test_without_a_token_that_of_the_environment_counts_and_is_written_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STREAMSKIT_TOKEN", "of the environment")
    assert config().token_text == "of the environment"
    assert config(token="hush").token_text == "hush"
    assert "streamskit.token" not in config().as_properties()
    monkeypatch.setenv("STREAMSKIT_TOKEN", "")
    assert config().token_text is None


@pytest.mark.parametrize("key", [key for key in KEYS if key.kind.is_secret])
def test_a_secret_in_a_file_that_cannot_be_taken_is_not_repeated(key: ConfigKey) -> None:
    def refuse(text: str) -> str:
        raise ValueError

    strict = dataclasses.replace(key, kind=dataclasses.replace(key.kind, parse=refuse))
    with pytest.raises(StreamsError, match=rf"^{key.kafka_name} cannot be taken; give ") as failure:
        strict.parse("hush")
    assert "hush" not in str(failure.value)


def test_how_producers_write_and_how_many_brokers_keep_internal_topics_is_passed_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {"producer.compression.type": "lz4", "linger.ms": "7", "replication.factor": "3"}
    made = StreamsConfig.from_properties(KAFKAS | given)
    assert not caplog.records
    assert made.replication_factor == 3
    told = {"bootstrap.servers": "localhost:9", "compression.type": "lz4", "linger.ms": "7"}
    assert for_java(made.connection, "producer") == told
    assert for_java(made.connection, "consumer") == {"bootstrap.servers": "localhost:9"}
    assert not made.connection.is_secured
    assert pickle.loads(pickle.dumps(made.connection)) == made.connection
    assert StreamsConfig.from_properties(made.as_properties()) == made
    written = plan(topology(), "app", query_options(made))[0]
    for sink in (_transactions(made, written).settings,):
        assert {name: sink[f"kafka.{name}"] for name in told} == told
        assert sink["kafka.batch.size"] == "131072"
    assert _transactions(config(), written).settings["kafka.linger.ms"] == "20"


def test_what_stands_under_a_foreign_key_is_not_logged_or_raised(caplog: pytest.LogCaptureFixture) -> None:
    line = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="hush";'
    name = "producer.confluent.monitoring.interceptor.sasl.jaas.config"
    with caplog.at_level(logging.WARNING, "streamskit"):
        StreamsConfig.from_properties(KAFKAS | {name: line})
    assert name in caplog.text
    assert "hush" not in caplog.text
    with pytest.raises(StreamsError, match=r"^default\.value\.serde has no counterpart on Spark: ") as failure:
        StreamsConfig.from_properties(KAFKAS | {"default.value.serde": "hush"})
    assert "hush" not in str(failure.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"comit_interval": "1 s"}, "There is no setting 'comit_interval': did you mean 'commit_interval'?"),
        ({"commit_interval_ms": 5}, "There is no setting 'commit_interval_ms': did you mean 'commit_interval'?"),
        ({"colour": "red"}, "There is no setting 'colour'."),
        ({"commit_interval": "5 parsecs"}, "commit_interval is '5 parsecs'; give a duration: '5 seconds', a"),
        ({"task_timeout": -1}, "task_timeout is -1; give a duration"),
        ({"session_timeout": 1.5}, "session_timeout is 1.5; give a duration"),
        ({"num_standby_replicas": "two"}, "num_standby_replicas is 'two'; give a whole number, 0 or more."),
        ({"num_standby_replicas": True}, "num_standby_replicas is True; give a whole number, 0 or more."),
        ({"statestore_cache_max_bytes": -1}, "statestore_cache_max_bytes is -1; give a whole number, 0 or more."),
        ({"num_stream_threads": 0}, "num_stream_threads is 0; give a whole number, 1 or more."),
        ({"num_stream_threads": 2, "real_time": "5 s"}, "num_stream_threads does not go with real_time, which keeps a"),
        ({"max_records_per_batch": 0}, "max_records_per_batch is 0; give a whole number, 1 or more."),
        ({"max_request_size": None}, "max_request_size is None; give a whole number, 1024 or more."),
        ({"processing_guarantee": "at_most_once"}, "processing_guarantee is 'at_most_once'; give 'at_least_once'"),
        ({"on_data_loss": "ignore"}, "on_data_loss is 'ignore'; give 'stop', which ends the application at"),
        ({"application_server": 8080}, "application_server is 8080; give text, such as '127.0.0.1:8080'."),
        ({"listen": "nonsense"}, "listen is 'nonsense'; give an address as host:port, such as '0.0.0.0:8080'."),
        ({"state_dir": 5}, "state_dir is 5; give a folder, as text or a Path."),
        ({"real_time": "1 second"}, "real_time='1 s' is too short: Spark pauses between"),
        ({"real_time": "5 s", "processing_guarantee": "exactly_once"}, "Leave real_time out, or processing_guarantee="),
        ({"application_id": "other"}, "The application id is given twice: 'app' and 'other'."),
    ],
)
def test_a_wrong_setting_is_answered_with_what_to_write(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(StreamsError) as failure:
        config(**settings)
    assert said in str(failure.value)


def test_a_class_in_place_of_a_handler_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"production_handler is <class .*LogAndFail'>; give LogAnd"):
        config(production_handler=LogAndFail)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: StreamsConfig.of("app"),
            "bootstrap_servers is missing: give host:port, such as 'localhost:9092', several",
        ),
        (
            lambda: StreamsConfig.of(None, "b:9"),
            "application_id is missing: give a name of at most 249 letters,",
        ),
        (lambda: StreamsConfig("../app", "b:9"), "application_id is '../app'; give a name of at most 249 letters,"),
        (lambda: StreamsConfig("..", "b:9"), "application_id is '..'; give a name of at most 249 letters,"),
        (lambda: StreamsConfig("app", " "), "bootstrap_servers is ' '; give host:port, such as 'localhost:9092', sev"),
        (lambda: StreamsConfig("app", "b"), "bootstrap_servers is 'b'; give host:port, such as 'localhost:9092'"),
        (lambda: StreamsConfig("app", "b:9,c"), "bootstrap_servers is 'b:9,c'; give host:port, such as"),
        (lambda: StreamsConfig("app", "b:99999"), "bootstrap_servers is 'b:99999'; give host:port, such as"),
    ],
)
def test_what_every_application_needs_has_to_be_given(make: Callable[[], StreamsConfig], said: str) -> None:
    with pytest.raises(StreamsError) as failure:
        make()
    assert said in str(failure.value)


@pytest.mark.parametrize(("guarantee", "expected"),
                         [("at_least_once", False), ("exactly_once", True), ("exactly_once_v2", True)])  # fmt: skip
def test_kafkas_names_of_the_guarantees_are_known(guarantee: str, expected: bool) -> None:
    assert config(processing_guarantee=guarantee).exactly_once is expected


def test_real_time_goes_with_output_at_least_once() -> None:
    assert config(real_time="5 seconds").real_time == 5_000


def test_the_folder_of_an_application_lies_in_its_state_dir(tmp_path: Path) -> None:
    assert config(state_dir=str(tmp_path)).folder == tmp_path / "app"
    assert config().folder.parts[-3:] == (".streamskit", "applications", "app")


def test_the_folder_of_an_application_stays_where_it_is_when_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    relative, default = config(state_dir="states"), config()
    before = default.folder
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert relative.folder == tmp_path / "states" / "app"
    assert default.folder == before
    assert application_folder("app", "states") == tmp_path / "elsewhere" / "states" / "app"


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in ("~/state", Path("~/state")):
        assert config(state_dir=folder).folder == tmp_path / "state" / "app"
        assert application_folder("app", folder) == tmp_path / "state" / "app"
    assert StreamsConfig.from_properties(KAFKAS | {"state.dir": "~/state"}).folder == tmp_path / "state" / "app"
    with pytest.raises(StreamsError, match="give a folder, as text or a Path"):
        config(state_dir="~nobody-of-this-name/state")


@pytest.mark.parametrize("servers", ["one:9092", "one:9092, two:9092", "[::1]:9092", "PLAINTEXT://one:9092"])
def test_several_brokers_and_ipv6_addresses_are_taken(servers: str) -> None:
    assert StreamsConfig("app", servers).bootstrap_servers == servers
    assert ClientSettings.of(servers).bootstrap_servers == servers


def test_an_address_without_a_port_is_refused_before_anybody_waits_for_it() -> None:
    with pytest.raises(StreamsError, match="bootstrap_servers is 'broker'; give host:port, such as 'localhost:9092'"):
        ClientSettings.of("broker")


# ---- who takes it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "streams",
    [
        lambda: KafkaStreams(topology(), "app", "localhost:9", commit_interval="1 second"),
        lambda: KafkaStreams(
            topology(), application_id="app", bootstrap_servers="localhost:9", commit_interval="1 second"
        ),
        lambda: KafkaStreams(topology(), config(commit_interval=1_000)),
        lambda: KafkaStreams(topology(), config(commit_interval=5), commit_interval="1 second"),
        lambda: KafkaStreams(topology(), StreamsConfig("app", "b:9", commit_interval=1_000), "localhost:9"),
        lambda: KafkaStreams(
            topology(), StreamsConfig("another", "localhost:9", commit_interval=1_000), application_id="app"
        ),
    ],
)
def test_kafka_streams_takes_a_config_or_keywords_and_these_first(streams: Callable[[], KafkaStreams]) -> None:
    made = streams()
    assert made.config == config(commit_interval="1 second")
    assert (made.application_id, made.bootstrap_servers) == ("app", "localhost:9")
    assert made.folder == made.config.folder


def test_kafka_streams_answers_a_wrong_keyword() -> None:
    with pytest.raises(StreamsError, match="There is no setting 'state_folder': did you mean 'state_dir'"):
        KafkaStreams(topology(), "app", "localhost:9", state_folder="here")  # type: ignore[call-arg]


def test_queries_run_as_the_config_says() -> None:
    options = query_options(config(statestore_cache_max_bytes=0, emit_interval="1 s", processing_handler=LogAndFail()))
    assert (options.cache, options.emit_interval, options.test) == (False, 1_000, False)
    assert query_options(config()).cache
    assert str(options.bootstrap_servers) == "localhost:9"


# ---- properties files ------------------------------------------------------------------------------------------------


def test_a_properties_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    (tmp_path / "streams.properties").write_bytes(
        b"# a comment\n! another one\napplication.id = app\n"
        b"bootstrap.servers: localhost:9092,\\\n    localhost:9093\n"
        b"state.dir=/tmp/Stra\xdfe \n\ncommit.interval.ms 250\n"
        b"processing.guarantee=exactly_once_v2\nnum.standby.replicas=1\nstatestore.cache.max.bytes=0\n"
        b"application.server=127.0.0.1:0\ntask.timeout.ms=60000\nstreamskit.on.data.loss=\\u0063ontinue\n"
        b"consumer.session.timeout.ms=45000\nproducer.max.request.size=2048\n"
    )
    assert StreamsConfig.from_properties(tmp_path / "streams.properties") == StreamsConfig(
        "app", "localhost:9092,localhost:9093", "/tmp/Straße", 250, 0, "exactly_once_v2", "1 minute",
        application_server="127.0.0.1:0", num_standby_replicas=1, session_timeout=45_000, max_request_size=2048,
        on_data_loss="continue",
    )  # fmt: skip


def test_what_a_file_lacks_can_be_given_and_goes_before_it(tmp_path: Path) -> None:
    (tmp_path / "a.properties").write_text("application.id=app\ntask.timeout.ms=7\nnum.standby.replicas=\n")
    made = StreamsConfig.from_properties(str(tmp_path / "a.properties"), bootstrap_servers="b:9", task_timeout=8)
    assert made == StreamsConfig("app", "b:9", task_timeout=8)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    made = config(
        state_dir="/tmp/Straße\\new", commit_interval="1 s", real_time="7 s", token="se=cret", max_records_per_batch=5,
        emit_interval=9, deserialization_handler=LogAndContinue("dead"), production_handler=LogAndContinue("dead"),
        processing_handler=LogAndFail(),
    )  # fmt: skip
    made.to_properties(tmp_path / "a.properties")
    assert StreamsConfig.from_properties(tmp_path / "a.properties") == made
    written = (tmp_path / "a.properties").read_text("latin-1")
    assert '# The Kafka brokers, as "host:port", several with commas between them.\nbootstrap.servers=' in written
    assert StreamsConfig.from_properties(made.as_properties()) == made
    assert StreamsConfig.from_properties(config().as_properties()) == config()


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"default.deserialization.exception.handler": "LogAndContinueExceptionHandler"},
         {"deserialization_handler": LogAndContinue()}),
        ({"processing.exception.handler": "org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler",
          "errors.dead.letter.queue.topic.name": "dead"}, {"processing_handler": LogAndContinue("dead")}),
        ({"default.production.exception.handler": "org.apache.kafka.streams.errors.DefaultProductionExceptionHandler"},
         {"production_handler": LogAndFail()}),
        ({"cache.max.bytes.buffering": "0"}, {"statestore_cache_max_bytes": 0}),
        ({"default.value.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde"}, {}),
        ({"security.protocol": "PLAINTEXT", "topology.optimization": "none", "replication.factor": "-1"}, {}),
        ({"consumer.auto.offset.reset": "earliest"}, {}),
        ({"num.stream.threads": "4"}, {"num_stream_threads": 4}),
    ],
)  # fmt: skip
def test_kafkas_other_names_and_what_holds_in_any_case_are_known(
    properties: dict[str, str], expected: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert StreamsConfig.from_properties(KAFKAS | properties) == config(**expected)
    assert not caplog.records


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"statestore.cache.max.bytes": 0}, {"statestore_cache_max_bytes": 0}),
        ({"commit.interval.ms": 0}, {"commit_interval": 0}),
        ({"ensure.explicit.internal.resource.naming": True}, {"ensure_explicit_internal_resource_naming": True}),
        ({"ensure.explicit.internal.resource.naming": False}, {}),
        ({"bootstrap.servers": ["a:9", "b:9"]}, {"bootstrap_servers": "a:9,b:9"}),
        ({"state.dir": Path("/data/app")}, {"state_dir": Path("/data/app")}),
        ({"producer.linger.ms": 5}, {"client_settings": {"producer.linger.ms": "5"}}),
        ({"streamskit.token": Secret("a long secret"), "task.timeout.ms": None}, {"token": "a long secret"}),
    ],
)
def test_values_that_are_not_text_are_taken_for_what_would_stand_in_a_file(
    properties: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert StreamsConfig.from_properties(KAFKAS | properties) == dataclasses.replace(config(), **expected)


def test_a_number_under_a_key_that_is_not_used_is_reported_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "streamskit"):
        assert StreamsConfig.from_properties(KAFKAS | {"poll.ms": 100}) == config()
    assert "poll.ms has no counterpart on Spark" in caplog.text


@pytest.mark.parametrize("prefix", ["", "producer.", "main.consumer."])
def test_brokers_under_other_names_are_allowed_by_an_empty_value_in_a_file(tmp_path: Path, prefix: str) -> None:
    path = tmp_path / "streams.properties"
    name = f"{prefix}ssl.endpoint.identification.algorithm"
    path.write_text(f"application.id=app\nbootstrap.servers=b:9\nsecurity.protocol=SSL\n{name}=\nclient.id=\n")
    made = StreamsConfig.from_properties(path)
    own = made.connection.revealed("consumer" if "consumer" in prefix else "producer")
    assert own == {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}
    assert StreamsConfig.from_properties(made.as_properties()) == made


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("num.standby.replica=1", "There is no setting 'num.standby.replica': did you mean 'num.standby.replicas'?"),
        ("commit.interval.ms=5 s", "commit.interval.ms is '5 s'; give a whole number of milliseconds, without a unit."),
        ("num.standby.replicas=-1", "num.standby.replicas is '-1'; give a whole number, 0 or more."),
        ("default.value.serde=com.example.MySerde", "has no counterpart on Spark: name serdes where records are read"),
        ("default.timestamp.extractor=com.example.Mine", "give it to the source: builder.stream('orders', timestamps="),
        ("security.protocol=SASL_SSL", "sasl.mechanism is missing in the client settings"),
        ("ssl.truststore.location=/a", "have ssl.truststore.location and no security.protocol"),
        ("auto.offset.reset=newest", "auto.offset.reset is 'newest'; give earliest, latest, none or by_duration:PT1H"),
        ("consumer.isolation.level=read_committed", "processing_guarantee decides that"),
        ("topology.optimization=all", "repartition topics are not merged here."),
        ("deserialization.exception.handler=com.example.Mine", "A class of Java's own cannot run here"),
        ("errors.dead.letter.queue.topic.name=dead", "no handler goes on that would write there"),
        ("application.id=app", "application.id is set a second time: leave one of the two."),
        ("processing.guarantee=sometimes", "processing.guarantee is 'sometimes'; give 'at_least_once'"),
        ("state.dir=C:\\user", "write a backslash as"),
        ("replication.factor=0", "replication.factor is '0'; give a whole number, 1 or more, or -1 for what the clus"),
        ("producer.compression.type=zip", "compression.type is 'zip'; give none or gzip or snappy or lz4 or zstd."),
        ("producer.linger.ms=soon", "linger.ms is 'soon'; give a whole number, 0 or more."),
    ],
)
def test_a_wrong_line_is_named_with_what_to_write(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "streams.properties"
    path.write_text(f"application.id=app\n\nbootstrap.servers=a:9,\\\n   b:9\n{line}\n")
    with pytest.raises(StreamsError) as failure:
        StreamsConfig.from_properties(path)
    assert str(failure.value).startswith("streams.properties, line 5: ")
    assert said in str(failure.value)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("main.consumer.max.poll.records", "max_records_per_batch says how much"),
        ("producer.acks", "choose the settings of their Kafka clients"),
        ("consumer.compression.type", "choose the settings of their Kafka clients"),
        ("restore.consumer.fetch.min.bytes", "choose the settings of their Kafka clients"),
        ("rocksdb.config.setter", "in its own state store"),
        ("metric.reporters", "have the numbers"),
        ("metrics.recording.level", "have the numbers"),
        ("retries", "choose the settings of their Kafka clients"),
        ("max.warmup.replicas", "instances agree by themselves"),
        ("topic.cleanup.policy", "how its internal topics are kept"),
    ],
)
def test_what_is_only_about_speed_is_reported_and_not_used(
    name: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "streamskit"):
        assert StreamsConfig.from_properties(KAFKAS | {name: "7"}) == config()
    (record,) = caplog.records
    said = record.getMessage()
    assert said.startswith(f"{name} has no counterpart on Spark: ")
    assert said.endswith(" It is not used.")
    assert why in said


def test_each_reason_is_given_for_one_kind_of_keys() -> None:
    assert len({foreign.names for foreign in FOREIGN}) == len(FOREIGN)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StreamsError, match=r"nowhere.properties cannot be read: No such file or directory\."):
        StreamsConfig.from_properties(tmp_path / "nowhere.properties")


@pytest.mark.parametrize(
    ("handlers", "said"),
    [
        ({"processing_handler": lambda *_: Response.resume()}, "processing_handler is <function"),
        ({"processing_handler": LogAndContinue("a"), "production_handler": LogAndContinue("b")}, "has one topic for"),
    ],
)
def test_what_no_properties_file_can_say_is_refused(handlers: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(StreamsError) as failure:
        config(**handlers).to_properties(tmp_path / "a.properties")
    assert said in str(failure.value)
    assert not (tmp_path / "a.properties").exists()


def test_it_is_a_public_name() -> None:
    assert streamskit.StreamsConfig is StreamsConfig


def test_the_page_on_configuration_has_a_row_for_each_key() -> None:
    page = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()
    missing = [
        key.name
        for key in StreamsConfig.settings()
        if f"| `{key.name}` | `{key.kafka_name}` |" not in page or f"| {key.doc} |" not in page
    ]
    assert missing == []


def test_a_config_for_a_test_driver_needs_no_broker() -> None:
    assert StreamsConfig("app", "none").bootstrap_servers == "none"
