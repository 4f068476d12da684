"""Topics that queries write, deleted or made anew while they run."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from streamskit import LogAndContinue, StreamsBuilder
from streamskit.api.error_handlers import Handlers
from streamskit.kafka.topics import TopicIdentity
from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import Plan
from streamskit.planning.planner import plan
from streamskit.runtime.written_topics import WrittenTopics, watched, written

THERE = {name: TopicIdentity(f"id of {name}", 1) for name in ("in", "out", "dead", "app-counts-changelog")}


@pytest.fixture
def counting() -> Plan:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count("counts").to_stream().to("out")
    handlers = Handlers(production=LogAndContinue("dead"))
    (counting,) = plan(builder.build(), "app", QueryOptions(handlers=handlers))
    return counting


def without(*names: str) -> Mapping[str, TopicIdentity]:
    return {name: identity for name, identity in THERE.items() if name not in names}


def said(plan_: Plan, *looks: Mapping[str, TopicIdentity]) -> str:
    topics = WrittenTopics("app")
    for found in looks:
        topics.look([plan_], found)
    return str(topics.refusal(plan_) or "")


def test_what_a_query_writes_is_watched_and_what_it_reads_is_not(counting: Plan) -> None:
    assert written(counting) == ["out", "dead", "app-counts-changelog"]
    assert not said(counting, without("in"), without("in"))


@pytest.mark.parametrize("topic", ["out", "dead"])
def test_a_topic_that_is_gone_in_two_looks_was_deleted(counting: Plan, topic: str) -> None:
    assert not said(counting, THERE, without(topic))
    assert said(counting, THERE, without(topic), without(topic)) == (
        f"Topic '{topic}', which sub-topology 0 of 'app' writes, is not there any more: it was deleted while the "
        "application ran. Create it again, then start the application: it goes on after its last whole micro-batch."
    )


def test_an_output_that_is_made_anew_is_written_on(counting: Plan) -> None:
    anew = {**THERE, "out": TopicIdentity("another", 3)}
    assert not said(counting, THERE, without("out"), anew)
    assert not said(counting, without("out"), without("out"), anew)


def test_a_deleted_copy_of_a_checkpoint_is_told_of_once_and_stops_nothing(
    counting: Plan, caplog: pytest.LogCaptureFixture
) -> None:
    there = {**THERE, "app-0-checkpoint": TopicIdentity("id of the copy", 1)}
    assert "app-0-checkpoint" in watched(counting)
    assert not said(counting, there, THERE)
    assert caplog.text == ""
    assert not said(counting, there, THERE, THERE, THERE)
    assert caplog.text.count("'app': topic 'app-0-checkpoint', which keeps a copy of the checkpoint of") == 1


def test_a_topic_on_the_way_to_a_function_is_made_by_the_next_start() -> None:
    builder = StreamsBuilder()
    builder.stream("in").foreach(lambda key, value: None, name="told")
    (telling,) = plan(builder.build(), "app")
    assert written(telling) == ["app-told-calls"]
    told = said(telling, THERE, THERE)
    assert told.startswith("Topic 'app-told-calls', on which records travel to the function of told, was deleted while")
    assert "Start the application again: it makes the topic" in told


@pytest.mark.parametrize(
    ("kind", "what"), [("transactions", "notes what it has written"), ("checkpoint", "keeps a copy of its checkpoint")]
)
def test_what_transactions_write_beside_records_is_watched_with_exactly_once_alone(
    counting: Plan, kind: str, what: str
) -> None:
    assert not said(counting, THERE, THERE)
    topics = ("app-0-transactions", "app-0-checkpoint")
    exactly_once = replace(counting, options=replace(counting.options, in_transactions=True))
    there = {**THERE, **{topic: TopicIdentity(f"id of {topic}", 1) for topic in topics}}
    assert not said(exactly_once, there, there)
    gone = {name: identity for name, identity in there.items() if name != f"app-0-{kind}"}
    told = said(exactly_once, there, gone, gone)
    assert told.startswith(
        f"Topic 'app-0-{kind}', in which sub-topology 0 of 'app' {what}, was deleted while the application ran. "
        "Start it again: it makes the topic"
    )


@pytest.mark.parametrize("anew", [False, True])
def test_a_changelog_that_was_deleted_is_told_though_it_may_be_there_again(counting: Plan, anew: bool) -> None:
    gone = without("app-counts-changelog")
    after = {**THERE, "app-counts-changelog": TopicIdentity("another", 1)} if anew else gone
    told = said(counting, THERE, gone, after)
    assert told.startswith("The changelog of store 'counts', topic 'app-counts-changelog', was deleted while 'app' ran")
    assert "Call clean_up() and start again" in told
