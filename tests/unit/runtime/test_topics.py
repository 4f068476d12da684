"""Which stores instances are told of, how they share them out, and with which settings changelogs are created."""

import json
from typing import Any

import pytest

from streamskit import Materialized, Serdes, Stores, StreamsBuilder, TimeWindows, TopologyError
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan
from streamskit.queries.group.catalogue import describe_store, described_store
from streamskit.runtime.topics import ApplicationTopics, catalogue, ever_made


def test_all_stores_of_a_partition_of_a_sub_topology_are_one_task_however_many_queries_run_it() -> None:
    builder = StreamsBuilder()
    trades = builder.stream("trades", value=Serdes.long()).group_by_key()
    trades.count("totals")
    trades.windowed_by(TimeWindows.of_size_with_no_grace("10 seconds")).count(Materialized("by-time"))
    topology = builder.build()
    plans = plan(topology, "app", QueryOptions(cache=True))
    assert [each.name for each in plans] == ["0.1", "0.2"]
    shared = catalogue("app", topology, plans)
    shared = shared.with_partitions({"app-totals-changelog": 2, "app-by-time-changelog": 2})
    assert shared.tasks() == ["0_0", "0_1"]
    assert {place.topic for place in shared.changelog_partitions("0_1")} == {
        "app-totals-changelog",
        "app-by-time-changelog",
    }


class NoTopics:
    """A broker that has the topic `trades`, and remembers what is created."""

    connection = "nowhere:1"

    def __init__(self) -> None:
        self.created: dict[str, dict[str, str]] = {}

    def create_topics(self, *names: str, partitions: int, config: dict[str, str], replication_factor: int) -> None:
        self.created |= dict.fromkeys(names, config)


def created(materialized: Materialized) -> dict[str, str]:
    """Return the settings with which the changelog of a count is created."""
    builder = StreamsBuilder()
    builder.stream("trades", value=Serdes.long()).group_by_key().count(materialized)
    return changelog_of(builder)


def changelog_of(builder: StreamsBuilder) -> dict[str, str]:
    return made_by(builder)["app-counts-changelog"]


def made_by(builder: StreamsBuilder) -> dict[str, dict[str, str]]:
    """Return the internal topics that a program's first start creates, with their settings."""
    brokers: Any = NoTopics()
    topology = builder.build()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamskit.runtime.topics.list_topics", lambda connection, internal: {"trades": 2})
        ApplicationTopics("app", plan(topology, "app", QueryOptions(cache=True))).prepare(brokers)
    made: dict[str, dict[str, str]] = brokers.created
    return made


def test_records_keep_their_event_time_in_internal_topics_whatever_the_brokers_default_is() -> None:
    builder = StreamsBuilder()
    trades = builder.stream("trades", value=Serdes.long())
    trades.foreach(lambda key, value: None)
    grouped = trades.repartition("again").group_by_key()
    grouped.count("counts")
    grouped.windowed_by(TimeWindows.of_size_with_no_grace("10 seconds")).count(Materialized("by-time"))
    made = made_by(builder)
    with_records = {topic for topic in made if not topic.endswith(("-checkpoint", "-transactions"))}
    assert len(with_records) >= 4  # a repartition topic, two changelogs, and the one of foreach
    assert {made[topic].get("message.timestamp.type") for topic in with_records} == {"CreateTime"}


@pytest.mark.parametrize("cache", [True, False])
def test_what_is_forgotten_are_the_topics_of_both_modes_as_auto_may_have_chosen_either(cache: bool) -> None:
    builder = StreamsBuilder()
    trades = builder.stream("trades", value=Serdes.long())
    trades.group_by_key().count().to_stream().to("counts", value=Serdes.long())
    trades.to("copies")
    made = set(ever_made(builder.build(), "app", QueryOptions(cache=cache)))
    assert {"app-0-checkpoint", "app-0.1-checkpoint", "app-0.2-checkpoint", "app-0.1-transactions"} <= made
    assert all(topic.startswith("app-") for topic in made)


def test_a_changelog_is_created_with_the_settings_of_its_store_beside_the_usual_ones() -> None:
    settings = created(Materialized("counts", changelog={"segment.bytes": 1_048_576, "preallocate": True}))
    usual = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
    assert settings == usual | {"segment.bytes": "1048576", "preallocate": "true"}


def created_for_a_table(materialized: Materialized) -> dict[str, str]:
    """Return the settings with which the changelog of a table behind a stream is created."""
    builder = StreamsBuilder()
    builder.stream("trades", value=Serdes.long()).to_table(materialized)
    return changelog_of(builder)


def test_the_changelog_of_a_versioned_store_keeps_all_versions_for_its_history_and_a_day() -> None:
    assert created_for_a_table(Materialized.versioned("counts", "1 hour"))["min.compaction.lag.ms"] == "90000000"
    assert "min.compaction.lag.ms" not in created_for_a_table(Materialized("counts"))
    own = Materialized("counts", history="1 hour", changelog={"min.compaction.lag.ms": 7})
    assert created_for_a_table(own)["min.compaction.lag.ms"] == "7"


def test_settings_of_a_changelog_make_no_other_store_and_travel_with_its_description() -> None:
    plain = Stores.persistent_key_value_store("totals", Serdes.string(), Serdes.long())
    store = plain.with_logging(config={"segment.bytes": 1_048_576})
    assert store == plain
    assert described_store(json.loads(json.dumps(describe_store(store)))).changelog == (("segment.bytes", "1048576"),)


def test_a_list_of_stores_of_an_earlier_version_has_no_settings_of_changelogs() -> None:
    said = describe_store(Stores.persistent_key_value_store("totals", Serdes.string(), Serdes.long()))
    del said["changelog"]
    assert described_store(said).changelog == ()


def test_settings_for_a_changelog_that_is_switched_off_are_refused() -> None:
    builder = StreamsBuilder()
    counted = builder.stream("trades").group_by_key()
    with pytest.raises(TopologyError, match="'counts' has no changelog, so settings for one have no effect"):
        counted.count(Materialized("counts", logged=False, changelog={"segment.bytes": 1}))
