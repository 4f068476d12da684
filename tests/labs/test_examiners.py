"""What examiners say of answers that make no mistake of a lab's list."""

import json
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.sql import types as T

from streamskit import (
    Materialized,
    Processor,
    Record,
    Response,
    Serde,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
    TopologyTestDriver,
)
from streamskit.common.errors import StreamsKitError
from streamskit.course.labs import catalogue
from streamskit.course.labs.exercise import Says, Verdict, topology_of
from streamskit.course.labs.exercises import getting_started
from streamskit.course.labs.exercises.elasticity import READING, shares
from streamskit.course.labs.exercises.fault_tolerance import BALANCES, recorded_changelog, standby
from streamskit.course.labs.exercises.serialization import FIRST
from streamskit.course.labs.exercises.topology_and_tasks import WRONG_COUNTS, global_tables_too, tasks
from streamskit.course.labs.loops import Due, Later, followed_by
from streamskit.course.labs.recording import OutcomeRow, Piped, Recording
from streamskit.course.labs.trial import Trial
from streamskit.testing import MockProcessorContext


def verdict(exercise: str, answer: Any) -> Verdict:
    return catalogue.exercise(exercise).examine_answer(answer)


def grown(field: str, other_type: str) -> dict[str, Any]:
    """Return a schema with both new fields, in which an old field has another type."""
    old = [{**each, "type": other_type} if each["name"] == field else each for each in FIRST["fields"]]
    venue = {"name": "venue", "type": "string", "default": "unknown"}
    return {**FIRST, "fields": [*old, venue, {"name": "note", "type": ["null", "string"], "default": None}]}


def unpacked(data: bytes) -> int:
    return int(struct.unpack(">bI", data[:5])[1])


class Uncalled(Serde):
    data_type = T.IntegerType  # type: ignore[assignment]

    def serialize(self, value: Any) -> bytes | None:
        return None

    def deserialize(self, data: bytes | None) -> Any:
        return None


@pytest.mark.spark
def test_an_answer_with_a_part_missing_is_told_which_parts_there_are() -> None:
    assert "'together'" in verdict("alarms_of_five", {"one by one": 3}).says


@pytest.mark.spark
def test_values_without_a_known_mistake_are_told_which_ones_are_wrong() -> None:
    found = verdict("cuts", {"A": 1, "B": 1, "C": 5, "D": 2, "E": 7, "F": 2})
    assert found.misconception is None
    assert found.says == "C, E: wrong."


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (2, "2 is too small."),
        (9, "9 is too large."),
        ("4", "The answer has to be a number, without quotes, but is '4'."),
        (True, "The answer has to be a number, without quotes, but is True."),
    ],
)
def test_a_wrong_number_is_told_in_which_direction_the_right_one_lies(answer: Any, says: str) -> None:
    assert says in Says(4, "Four.")(answer).says


def test_a_number_written_as_text_is_told_as_text_and_not_as_wrong() -> None:
    assert verdict("cuts", {"A": "1", "B": 1, "C": 2, "D": 2, "E": 3, "F": 2}).says.startswith("A has to be a number")


def test_an_answer_that_is_no_ordinary_function_is_told_what_to_write() -> None:
    async def waits(builder: StreamsBuilder) -> None:
        builder.stream("a").to("b")

    def yields(builder: StreamsBuilder) -> Iterator[object]:
        yield builder.stream("a")

    for answer in (waits, yields):
        with pytest.raises(StreamsKitError, match="write def in place of async def, and no yield"):
            topology_of(answer)


@pytest.mark.parametrize(
    ("said", "is_stub"),
    [
        ("a failed on a record, at line 3, `raise NotImplementedError`: NotImplementedError.", True),
        ('a failed, at line 3, `raise NotImplementedError("no nulls")`: NotImplementedError: no nulls.', False),
    ],
)
def test_only_an_error_without_words_is_a_line_that_is_yet_to_be_written(said: str, is_stub: bool) -> None:
    assert Trial(Mock(), error=StreamsError(said)).is_stub is is_stub


def test_a_test_without_a_driver_is_told_to_take_one() -> None:
    assert "the driver" in verdict("three_failures", lambda: None).says


def test_a_test_that_is_a_generator_or_a_coroutine_is_told_that_nothing_would_run() -> None:
    def generates(driver: TopologyTestDriver) -> Iterator[None]:
        yield

    async def waits(driver: TopologyTestDriver) -> None: ...

    assert "no yield" in verdict("three_failures", generates).says
    assert "async def" in verdict("three_failures", waits).says


def test_an_answer_of_other_parts_is_told_which_it_has() -> None:
    due = catalogue.exercise("fair_shares").examine.expected()  # type: ignore[attr-defined]
    assert verdict("fair_shares", due).passed
    as_text = verdict("fair_shares", {str(count): shares for count, shares in due.items()})
    assert as_text.says.endswith("these parts: 1, 2, 4, 5, 8. It has '1', '2', '4', '5', '8'.")
    assert verdict("fair_shares", [[6], [3, 3]]).says.endswith("It is [[6], [3, 3]].")
    assert verdict("fair_shares", {**due, 1: 6}).says == "1 has to be a list, but is 6."


@pytest.mark.spark
def test_a_test_that_asserts_only_what_must_not_come_out_lets_through_a_program_that_sends_nothing() -> None:
    def half(driver: TopologyTestDriver) -> None:
        logins = driver.create_input_topic("logins")
        for second in (10, 71):
            logins.pipe_input("ada", {"ok": True, "address": "10.0.0.7"}, second * 1000)
        assert driver.create_output_topic("finals").is_empty()

    found = verdict("finals_by_the_clock", half)
    assert found.misconception
    assert found.misconception.name == "slipped through: it never comes out"
    assert found.says.endswith("It also passes with another one.")


@pytest.mark.parametrize(("looks_at_it", "mistake"), [(False, "the number is missing"), (True, "")])
def test_a_test_of_a_processor_has_to_look_at_the_value_that_is_forwarded(looks_at_it: bool, mistake: str) -> None:
    def looks(processor: type[Processor]) -> None:
        context, lockout = MockProcessorContext(), processor()
        context.add_state_store(Stores.in_memory_key_value_store("failed", Serdes.string(), Serdes.long()))
        lockout.init(context)
        for name, ok in [("ada", False), ("ada", True), ("ada", False), ("bob", False), ("ada", False)]:
            lockout.process(Record(name, ok, 0))
        assert context.forwarded() == []
        for name in ("ada", "ada", "bob"):
            lockout.process(Record(name, False, 0))
        found = [(each.record.key, each.record.value if looks_at_it else 3, each.child) for each in context.forwarded()]
        assert found == [("ada", 3, "lock")]

    found = verdict("lockout_alone", looks)
    assert (found.misconception.name if found.misconception else "") == (mistake and f"slipped through: {mistake}")


@pytest.mark.spark
def test_an_error_in_a_learners_test_itself_is_the_learners_to_see() -> None:
    def answer(driver: TopologyTestDriver) -> None:
        driver.no_such_method()  # type: ignore[attr-defined]

    found = verdict("three_failures", answer)
    assert isinstance(found.cause, AttributeError)
    assert "`driver.no_such_method()" in found.says
    assert "AttributeError: 'TopologyTestDriver' object has no attribute 'no_such_method'" in found.says


@pytest.mark.spark
def test_a_test_may_have_parameters_with_defaults_and_fail_as_pytest_does() -> None:
    def answer(driver: TopologyTestDriver, least: int = 3) -> None:
        logins, alarms = driver.create_input_topic("logins"), driver.create_output_topic("alarms")
        for second, ok in enumerate([False, True, False, False]):
            logins.pipe_input("ada", {"ok": ok, "address": "10.0.0.7"}, second * 10_000)
            if alarms.is_empty() != (second < least):
                pytest.fail("an alarm too many or too few")
        alarm = alarms.read_record()
        assert (alarm.key.key, alarm.value) == ("ada", least)
        with pytest.raises(StreamsKitError):
            alarms.read_record()

    assert verdict("three_failures", answer).passed


@pytest.mark.spark
@pytest.mark.parametrize(
    ("fails", "says"),
    [(lambda: pytest.fail("too early"), "Failed: too early"), (lambda: sys.exit("enough"), "SystemExit: enough")],
)
def test_a_test_that_fails_the_right_program_by_what_is_no_exception_is_told_so(
    fails: Callable[[], None], says: str
) -> None:
    found = verdict("three_failures", lambda driver: fails())
    assert found.misconception
    assert found.misconception.name == "a test that a right program fails"
    assert says in found.says


def test_a_function_that_changes_what_it_is_given_spoils_no_later_check() -> None:
    def emptied(widget: dict[str, Any]) -> tuple[bytes, bytes]:
        return widget.pop("key").encode(), json.dumps(widget.pop("value")).encode()

    assert verdict("bytes_of_a_widget", emptied).passed
    assert verdict("bytes_of_a_widget", emptied).passed


def test_a_pair_may_be_a_list() -> None:
    assert verdict("bytes_of_a_widget", lambda w: [w["key"].encode(), json.dumps(w["value"]).encode()]).passed


@pytest.mark.spark
def test_accounts_that_take_one_kind_of_dead_letter_for_the_other_are_wrong() -> None:
    def exchanged(came_in: list[str], out: list[Any], letters: list[Any]) -> dict[str, int]:
        kinds = {each.key: dict(each.headers)["__streams.errors.exception"] for each in letters}
        unread = sum(kind.endswith(b"SerializationException") for kind in kinds.values())
        written = {each.key for each in out}
        dropped = len(set(came_in) - written) - len(kinds)
        return {
            "out": len(written), "cannot be read": len(kinds) - unread, "step failed": unread, "dropped": dropped
        }  # fmt: skip

    assert verdict("accounts", exchanged).says == "cannot be read, step failed: wrong."


def test_records_after_those_of_a_recording_keep_its_stores_up_to_date() -> None:
    steps = (Piped("in", "a", 1, 0), Piped("in", "b", 2, 1))
    rows = (OutcomeRow(0, "a", 1, 0), OutcomeRow(1, "b", 2, 1))
    finals = tuple(row._replace(step=-1) for row in rows)
    later = (
        Later(Piped("in", "a", None, 2), (Due("sums", "a", None, 2),)),
        Later(Piped("in", "b", 3, 3), (Due("sums", "b", 5, 3),)),
        Later(Piped("in", None, 4, 4), dropped=1),
    )
    longer = followed_by(Recording(steps, {"sums": rows}, {"sums": finals}), *later)
    assert longer.steps == (*steps, *(each.record for each in later))
    assert longer.outputs["sums"] == (*rows, OutcomeRow(2, "a", None, 2), OutcomeRow(3, "b", 5, 3))
    assert longer.stores["sums"] == (OutcomeRow(-1, "b", 5),)
    assert longer.dropped == {4: 1}


@pytest.mark.parametrize(
    ("exercise", "answer", "says"),
    [
        ("bytes_of_a_widget", lambda w: (w["key"].encode(), json.dumps(w).encode("utf-16")), "text in UTF-8"),
        (
            "schema_number",
            lambda data: unpacked(data) if data[:1] in (b"", b"\0") else None,
            "unpack requires a buffer",
        ),
        ("schema_number", lambda data: unpacked(data) if data.startswith(b"\0") and data[4:] else None, "'startswith'"),
        ("Cents", Uncalled, "T.IntegerType() in the class"),
        ("through_a_topic", {}, "has to be a set of names"),
        ("through_a_topic", ["map", ["flat_map"]], "['flat_map'] is not one of the steps"),
        ("grown_schema", FIRST["fields"], "has to be a dict, as first_schema is"),
        ("grown_schema", {"fields": FIRST["fields"]}, "it has no 'type'"),
        ("grown_schema", grown("size", "long"), "cannot be read with the old schema"),
        ("grown_schema", grown("size", "string"), "The registry refuses it."),
    ],
)
def test_an_unusual_wrong_answer_is_told_what_is_wrong(exercise: str, answer: Any, says: str) -> None:
    found = verdict(exercise, answer)
    assert says in found.says
    assert not found.passed
    assert not found.misconception or found.misconception.name != "field without a default"


@pytest.mark.spark
def test_a_handler_that_is_none_is_not_told_to_be_a_topology_that_is_none() -> None:
    says = verdict("go_on_without_it", lambda: {"deserialization_handler": "continue"}).says
    assert says.startswith("The topology cannot run: deserialization_handler is 'continue'; give LogAndContinue()")


@pytest.mark.spark
def test_a_handler_that_is_yet_to_be_written_is_told_so() -> None:
    def stub(context: Any, record: Any, exception: Exception) -> Response:
        raise NotImplementedError

    assert not verdict("jokes_and_worse", stub).written


def test_an_application_that_is_not_returned_at_the_second_start_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getting_started, "_settled", lambda site, streams: None)
    found = getting_started.judge_application(Mock(answer=lambda site: None), Mock())
    assert found.says.startswith("When it was called a second time, it returned None")


@pytest.mark.parametrize("answer", [None, ..., {"..."}])
def test_names_that_are_yet_to_be_written_are_told_as_that(answer: Any) -> None:
    assert not verdict("through_a_topic", answer).written


@pytest.mark.spark
def test_a_basket_whose_absent_customer_becomes_null_is_the_same_basket() -> None:
    def baskets_of_customers(builder: StreamsBuilder) -> None:
        baskets = builder.stream("baskets", value=Serdes.json("customer string, total long"))
        baskets.map(lambda k, v: (v.customer, v)).to("baskets-of-customers")

    assert verdict("baskets_of_customers", baskets_of_customers).passed


@pytest.mark.spark
@pytest.mark.parametrize("kind", [frozenset, tuple, dict.fromkeys])
def test_any_collection_of_names_is_as_good_as_a_set(kind: Any) -> None:
    names = kind(["select_key", "map", "flat_map"])
    assert verdict("through_a_topic", names.keys() if isinstance(names, dict) else names).passed


def test_a_standby_has_the_rows_of_the_store_that_kafka_streams_had() -> None:
    rows = Recording.of("ktable-source-changelog", stores=["rows"]).stores["rows"]
    copy = standby(updates=recorded_changelog).stores["copy"]
    assert [row.value for row in copy] == [BALANCES[row.value] for row in rows]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("store", "mistake"),
    [
        ("moving-minute", None),
        (Materialized("moving-minute", retention="10 minutes"), None),
        (None, "the store has another name"),
    ],
)
def test_a_named_store_has_to_be_there_and_may_keep_its_windows_for_longer(store: Any, mistake: str | None) -> None:
    def moving_minute(builder: StreamsBuilder) -> None:
        windows = TimeWindows.of_size_and_grace("1 minute", "12 seconds").advance_by("24 seconds")
        counts = builder.stream("clicks").group_by_key().windowed_by(windows).count(store)
        counts.to_stream().to("moving-minute")

    found = verdict("moving_minute", moving_minute)
    assert (found.misconception.name if found.misconception else None) == mistake
    assert found.passed is (mistake is None)


def test_a_global_table_has_no_tasks() -> None:
    builder = StreamsBuilder()
    songs = builder.global_table("songs")
    builder.stream("plays").join(songs, lambda play, song: song, key_selector=lambda k, v: v).to("played")
    partitions = {"plays": 4, "songs": 3, "played": 5}
    assert tasks(builder.build(), partitions) == 4
    assert global_tables_too(builder.build(), partitions) == 7
    assert WRONG_COUNTS["topics that are written counted"](builder.build(), partitions) == 5


@pytest.mark.parametrize(
    ("before", "found"),
    [
        (lambda readings: readings, 2),
        (lambda readings: readings.repartition(), 2),
        (lambda readings: readings.repartition(partitions=8), 8),
        (lambda readings: readings.repartition(partitions=4).repartition(), 4),
    ],
)
def test_a_store_has_a_share_for_each_partition_of_what_its_step_reads(before: Any, found: int) -> None:
    builder = StreamsBuilder()
    before(builder.stream("readings", value=READING)).group_by_key().count("readings-by-station")
    assert shares(builder.build(), "readings-by-station") == found
