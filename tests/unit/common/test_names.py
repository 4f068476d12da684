"""Which names an application may have, wherever one comes in."""

from collections.abc import Callable
from pathlib import Path

import pytest

from streamskit import Instances, KafkaStreams, StreamsBuilder, faults
from streamskit.api.streams_config import StreamsConfig
from streamskit.cli.commands import main
from streamskit.common.errors import StreamsError
from streamskit.common.names import is_topic_name
from streamskit.common.paths import application_folder
from streamskit.testing import TopologyTestDriver
from streamskit.topology import Topology

NO_NAMES = ["", ".", "..", "...", "../orders", "a/b", "a\\b", "a b", "ä", "a\n", "a" * 250]


def topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count("counts")
    return builder.build()


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize(
    "enter",
    [
        lambda name: StreamsConfig(name, "127.0.0.1:1"),
        lambda name: KafkaStreams(topology(), name, "127.0.0.1:1"),
        lambda name: TopologyTestDriver(topology(), StreamsConfig(name, "127.0.0.1:1")),
        lambda name: Instances(name, "127.0.0.1:1"),
        lambda name: faults.Driver(topology, name, "127.0.0.1:1"),
        application_folder,
    ],
)
def test_topics_and_folders_can_be_named_after_an_application(enter: Callable[[str], object], name: str) -> None:
    with pytest.raises(StreamsError, match="give a name of at most 249 letters, digits"):
        enter(name)


@pytest.mark.parametrize("name", ["..", "../orders", ""])
def test_the_command_line_takes_no_other_names(
    name: str, capsys: pytest.CaptureFixture[str], empty_project: Path
) -> None:
    assert main(["serve", name, "--bootstrap-servers=127.0.0.1:1"]) == 1
    assert "give a name of at most 249 letters, digits" in capsys.readouterr().err


def test_names_that_kafka_takes_are_taken() -> None:
    assert all(map(is_topic_name, ("a", "0", "A.b_c-d", ".a", "..a", "-", "a" * 249)))


def test_an_id_with_which_an_internal_topic_has_too_long_a_name_is_refused() -> None:
    longest = "a" * (249 - len("-counts-changelog"))
    KafkaStreams(topology(), longest, "127.0.0.1:1")
    with pytest.raises(StreamsError, match=r"'a+-counts-changelog' would have a name of 251 .* shorter by 2\."):
        KafkaStreams(topology(), f"{longest}aa", "127.0.0.1:1")
