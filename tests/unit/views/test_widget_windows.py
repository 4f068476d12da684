"""The views of windows and joins: what they draw, how one steps through records, and where records come from."""

import gc
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from streamskit import (
    KafkaStreams,
    LogAndContinue,
    Materialized,
    Serdes,
    StreamsBuilder,
    TimestampExtractor,
    Topology,
    TopologyTestDriver,
    UnlimitedWindows,
)
from streamskit.api.windows import JoinWindows, TimeWindows, Windowed
from streamskit.common.errors import StreamsError
from streamskit.testing.memory import Raw
from streamskit.views import join_view, window_view
from streamskit.views.controls import Stepper
from streamskit.views.record_source import UNREADABLE, DriverRecords, ShownRecord, as_arrivals
from streamskit.views.replay import JoinSnapshot, SeenRecords, WindowSnapshot, join_snapshot, window_snapshot
from streamskit.views.upstream import join_sides, origins, windowed_nodes
from streamskit.widgets import JoinView, StoreView, WindowView
from tests.unit.views.widget_stores import MICROSECONDS, NINE

FIVE = TimeWindows.of_size_with_no_grace("5 seconds")


def seen(*arrivals: ShownRecord, **more: Any) -> SeenRecords:
    return SeenRecords(
        ["orders"], 0, [0], arrivals, more.pop("before", 0), more.pop("caveat", ""), more.pop("dropped", {})
    )


def at(second: float, key: str | None = "KO", side: int = 0) -> ShownRecord:
    return ShownRecord(key, "value", NINE + round(second * 1000), (side,))


def windows(*arrivals: ShownRecord, search: str = "", **more: Any) -> WindowSnapshot:
    return window_snapshot("counts", FIVE, FIVE.retention, seen(*arrivals, **more), search)


def joined(*arrivals: ShownRecord, outer: tuple[bool, bool] = (False, False)) -> JoinSnapshot:
    two_seconds = JoinWindows.of_time_difference_with_no_grace("2 seconds")
    return join_snapshot("KSTREAM-JOINTHIS-1", ("orders", "payments"), two_seconds, outer, seen(*arrivals))


# Windows.


def test_the_picture_has_records_windows_and_stream_time() -> None:
    svg = window_view.chart(windows(at(1), at(2), at(6)))
    ElementTree.fromstring(svg)
    assert "stream time 09:00:06" in svg
    assert "KO, 09:00:00 – 09:00:05: 2 records, closed" in svg
    assert "KO, 09:00:05 – 09:00:10: 1 record, open" in svg
    assert "record 2: KO = value at 09:00:02" in svg


def test_after_fewer_records_there_are_fewer_windows_and_an_earlier_stream_time() -> None:
    whole = windows(at(1), at(2), at(6))
    svg = window_view.chart(whole.after(2))
    assert "stream time 09:00:02" in svg
    assert "KO, 09:00:00 – 09:00:05: 2 records, open" in svg
    assert "09:00:05 – 09:00:10" not in svg
    assert "None of 3 records has come yet." in window_view.tell(whole.after(0))
    assert whole.after(99).at == 3


def test_the_axis_does_not_move_while_one_steps() -> None:
    whole = windows(at(1), at(2), at(30))
    axes = {"".join(re.findall(r">(09:00:\d\d)</text>", window_view.chart(whole.after(count)))) for count in (0, 1, 3)}
    assert len(axes) == 1


def test_a_dropped_record_is_a_cross_and_a_row_with_the_reason() -> None:
    taken = windows(at(1), at(20), at(2), dropped={"KSTREAM-AGGREGATE-0000000003": 1})
    assert "M-5-5L5 5M5-5L-5 5" in window_view.chart(taken)
    story = window_view.tell(taken)
    assert "Dropped: 1 record of 3, by Kafka Streams&#x27; rule" in story
    assert "what runs has counted 1 at KSTREAM-AGGREGATE-0000000003" in story
    assert "too late: its last window, 09:00:00 – 09:00:05, had closed at 09:00:05" in story
    assert "stream time stays at 09:00:20" in story


def test_records_with_times_that_no_calendar_has_are_drawn_and_told() -> None:
    far = (MICROSECONDS - NINE) / 1000
    taken, met = windows(at(1), at(far), at(2)), joined(at(1), at(far, side=1))
    for picture in (window_view.chart(taken), join_view.chart(met)):
        ElementTree.fromstring(picture)
        assert "stream time 1,700,000,000,000,000 ms" in picture
    assert "stream time stays at 1,700,000,000,000,000 ms" in window_view.tell(taken)
    assert "KO of payments at 1,700,000,000,000,000 ms" in join_view.tell(met)


def test_times_on_another_day_than_the_first_record_have_their_date() -> None:
    ten_years = 10 * 365 * 86_400
    taken, met = windows(at(1), at(ten_years), at(9)), joined(at(1), at(ten_years, side=1), at(9))
    before, story, picture = window_view.tell(taken.after(2)), window_view.tell(taken), window_view.chart(taken)
    assert "KO at 2033-12-30 09:00:00; stream time moves from 09:00:01 to 2033-12-30 09:00:00." in before
    assert "KO at 09:00:09; stream time stays at 2033-12-30 09:00:00." in story
    assert "stream time 2033-12-30 09:00:00" in picture
    assert ">2030-" in picture  # the axis, too, tells years apart
    assert ">2033-12-30 09:00:00</td>" in story  # in the row of the dropped record
    assert "KO of orders at 09:00:09; stream time is 2033-12-30 09:00:00. It meets none." in join_view.tell(met)


def test_a_search_leaves_the_keys_that_begin_so() -> None:
    svg = window_view.chart(windows(at(1), at(2, "IBM"), at(3, None), search="I"))
    assert "record 2: IBM" in svg
    assert "record 1: KO" not in svg
    assert "No key that is searched for (zzz) has come." in window_view.chart(windows(at(1), search="zzz"))


def test_more_keys_than_can_be_drawn_are_said_to_be_there() -> None:
    taken = windows(*(at(1, f"key{number}") for number in range(9)))
    assert "3 more keys are not drawn" in window_view.tell(taken)


def test_keys_with_signs_of_html_are_text() -> None:
    taken = windows(at(1, "<script>"), at(20), at(2, "<script>"))
    assert "<script" not in WindowView.PAGE.saved(taken) + window_view.chart(taken)


def test_the_header_says_which_windows_and_which_records() -> None:
    header = WindowView.PAGE.header(windows(at(1), before=12_345), "live")
    assert "tumbling windows of 5 s, no grace" in header
    assert "records of orders" in header
    assert "the last 1; 12,345 came before them" in header


def test_a_saved_page_needs_no_script_and_says_what_its_picture_shows() -> None:
    html = WindowView.PAGE.saved(windows(at(1)))
    assert not re.search(r"<(script|input|button|select|svg)", html)
    assert 'alt="Chart: Windows of counts in event time (UTC)"' in html


# Joins.


def test_the_picture_of_a_join_has_a_line_for_each_pair() -> None:
    svg = join_view.chart(joined(at(1), at(2, side=1), at(9, side=1)))
    ElementTree.fromstring(svg)
    assert len(re.findall(r'd="M[\d.]+ 124L[\d.]+ 224"', svg)) == 1
    assert "at 09:00:01; joined" in svg
    assert "at 09:00:09; waiting" in svg


def test_what_became_of_a_record_changes_with_stream_time() -> None:
    whole = joined(at(1), at(9, side=1))
    assert whole.after(1).fates() == {(0, 0): "waiting"}
    assert whole.fates() == {(0, 0): "unmatched", (1, 1): "waiting"}
    assert joined(at(1), at(9, side=1), outer=(True, False)).fates()[0, 0] == "alone"
    assert joined(ShownRecord(None, "v", NINE, (0,))).fates() == {(0, 0): "dropped"}


def test_the_story_of_a_join_counts_pairs_and_fates() -> None:
    story = join_view.tell(joined(at(1), at(2, side=1), at(3, side=1), at(30)))
    assert "2 pairs met; records: 3 joined, 1 waiting." in story
    assert "Record 4 of 4: KO of orders at 09:00:30" in story
    assert "It meets none." in story


def test_the_header_of_a_join_says_how_far_apart_records_may_be() -> None:
    header = JoinView.PAGE.header(joined(at(1)), "live")
    assert "join of orders and payments, at most 2 s apart, no grace" in header


# Where records come from.


def counting_topology(extractor: TimestampExtractor | None = None, rekey: bool = False) -> Topology:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=Serdes.string(), value=Serdes.string(), timestamps=extractor)
    chosen = orders.filter(lambda v: v != "")
    chosen = chosen.select_key(lambda k, v: v) if rekey else chosen
    chosen.group_by_key().windowed_by(FIVE).count(Materialized("counts"))
    return builder.build()


def joining_topology() -> Topology:
    builder = StreamsBuilder()
    orders, payments = (builder.stream(name, key=Serdes.string(), value=Serdes.string()) for name in "op")
    two_seconds = JoinWindows.of_time_difference_with_no_grace("2 seconds")
    orders.join(payments, lambda left, right: left, two_seconds).to("joined")
    return builder.build()


def test_records_come_from_the_topic_that_feeds_the_windows_and_filters_between_are_named() -> None:
    topology = counting_topology()
    (node,), found = windowed_nodes(topology, "counts")
    (origin,) = origins(topology, node, "app")
    assert (origin.topics, found) == (("orders",), FIVE)
    assert "lies KSTREAM-FILTER-0000000001: records are shown as they are in the topic" in origin.caveat


def test_after_a_repartition_records_come_from_the_topic_between_with_its_real_name() -> None:
    topology = counting_topology(rekey=True)
    (node,), _ = windowed_nodes(topology, "counts")
    (origin,) = origins(topology, node, "app")
    assert origin.topics == ("app-counts-repartition",)
    assert origin.caveat == ""


def test_the_two_sides_of_a_join_have_their_own_topics() -> None:
    topology = joining_topology()
    sides = join_sides(topology, None)
    assert [origins(topology, node, "app", node.side)[0].topics for node in sides] == [("o",), ("p",)]
    assert join_sides(topology, sides[1].name) == sides


def test_a_window_without_an_end_is_not_drawn() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(UnlimitedWindows.of()).count("counts")
    with pytest.raises(ValueError, match=r"'counts' has no end, .*: StoreView\(streams, 'counts'\) shows its rows\."):
        windowed_nodes(builder.build(), "counts")


def test_a_store_or_join_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"There is no store 'count' with windows in this topology.*'counts'"):
        windowed_nodes(counting_topology(), "count")
    with pytest.raises(ValueError, match="There is no join of two streams in this topology"):
        join_sides(counting_topology(), None)
    with pytest.raises(ValueError, match="'nothing' is no join of two streams: choose by name"):
        join_sides(joining_topology(), "nothing")


def test_a_record_of_a_stream_that_is_joined_with_itself_is_on_both_sides() -> None:
    topology = joining_topology()
    sides = join_sides(topology, None)
    left, right = (origins(topology, node, "app", node.side)[0] for node in sides)
    both = [left, replace(right, topics=("o",))]
    assert as_arrivals([Raw("o", b"KO", None, 7)], both) == [ShownRecord("KO", None, 7, (0, 1))]


def test_a_record_with_a_negative_time_is_refused_and_the_others_are_shown() -> None:
    (origin,) = origins(counting_topology(), windowed_nodes(counting_topology(), "counts")[0][0], "app")
    raw = [Raw("orders", b"KO", b"1", NINE), Raw("orders", b"KO", b"-5", NINE), Raw("orders", b"KO", b"2", -1)]
    taken = windows(*as_arrivals(raw, [origin]), *as_arrivals(raw[:2], [origin], time=int))
    late = "too late: its last window, 00:00:00 – 00:00:05, had closed at 00:00:05"
    assert [step.why for step in taken.steps] == ["", "", "its time is negative", late, "its time is negative"]
    assert "1969" not in window_view.chart(taken)


def arrivals_with(extractor: TimestampExtractor, *raw: Raw, time: Any = None) -> list[ShownRecord]:
    topology = counting_topology(extractor)
    (origin,) = origins(topology, windowed_nodes(topology, "counts")[0][0], "app")
    return as_arrivals(raw, [origin], time)


def test_a_record_takes_the_latest_time_of_its_partition_where_the_extractor_says_so() -> None:
    raw = [Raw("orders", b"KO", b"x", each) for each in (-1, NINE + 5000, NINE, -1)]
    shown = arrivals_with(TimestampExtractor.use_partition_time_on_invalid(), *raw)
    assert [(each.timestamp, each.refused) for each in shown[1:]] == [(NINE + 5000, ""), (NINE, ""), (NINE + 5000, "")]
    assert shown[0].refused == "its time is negative"


def test_a_record_without_a_value_to_take_the_time_from_has_none() -> None:
    raw = [Raw("orders", b"KO", b"5000", NINE), Raw("orders", b"KO", None, NINE)]
    skipping = TimestampExtractor.of(lambda v: v.cast("bigint"), invalid="skip")
    assert [each.refused for each in arrivals_with(skipping, *raw, time=int)] == ["", "it has no time"]
    replacing = TimestampExtractor.of(lambda v: v.cast("bigint"), invalid="skip", missing="partition time")
    assert [each.timestamp for each in arrivals_with(replacing, *raw, time=int)] == [5000, 5000]


def test_a_value_that_time_cannot_read_is_named() -> None:
    extractor = TimestampExtractor.of(lambda v: v.cast("bigint"))
    with pytest.raises(StreamsError, match="time= takes no time from the value noon: ValueError: invalid literal"):
        arrivals_with(extractor, Raw("orders", b"KO", b"noon", NINE), time=int)


def test_a_key_that_is_null_in_json_is_no_key() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=Serdes.json("n int"), value=Serdes.string())
    orders.group_by_key().windowed_by(FIVE).count(Materialized("counts"))
    topology = builder.build()
    (origin,) = origins(topology, windowed_nodes(topology, "counts")[0][0], "app")
    (arrival,) = as_arrivals([Raw("orders", b"null", b"x", NINE)], [origin])
    assert arrival.key is None


def test_only_an_application_or_a_driver_can_be_viewed() -> None:
    with pytest.raises(TypeError, match=re.escape("WindowView(streams, 'a-store')")):
        WindowView("streams", "counts")  # type: ignore[arg-type]


# With a test driver.


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(counting_topology()) as running:
        yield running


@pytest.mark.spark
def test_a_view_of_a_driver_shows_what_is_piped_in_and_drops_what_the_driver_drops(driver: TopologyTestDriver) -> None:
    view = WindowView(driver, "counts")
    orders = driver.create_input_topic("orders")
    for second in (1, 7, 2, 8, 30, 9):
        orders.pipe_input("KO", "x", NINE + second * 1000)
    view.refresh()
    taken = view._snapshot
    assert [step.is_dropped for step in taken.steps] == [False, False, True, False, False, True]
    assert sum(step.missed for step in taken.steps) == driver.dropped()
    assert taken.seen.dropped == driver.metrics()


@pytest.mark.spark
def test_views_of_a_closed_driver_say_that_no_more_comes() -> None:
    with TopologyTestDriver(counting_topology()) as driver:
        driver.create_input_topic("orders").pipe_input("KO", "x", NINE)
        views = [WindowView(driver, "counts"), StoreView(driver.state_store("counts"))]
        for view in views:
            view.refresh()
            assert "● live" in view._header.value
    for view in views:
        view.refresh()
        assert "■ stopped" in view._header.value
        assert "The test driver is closed" in view._header.value


@pytest.mark.spark
def test_stepping_back_pauses_the_view_and_resuming_follows_the_last_record(driver: TopologyTestDriver) -> None:
    view = WindowView(driver, "counts")
    orders = driver.create_input_topic("orders")
    orders.pipe_records([("KO", "x", NINE + second * 1000) for second in (1, 2, 3)])
    view.refresh()
    view._stepper._back.click()
    assert "Record 2 of 3" in view._parts["story"].value
    assert "❚❚ paused" in view._header.value
    view._stepper._slider.value = 1
    assert '<div aria-live="polite">Record 1 of 3' in view._parts["story"].value, "a step is read out"
    orders.pipe_input("KO", "x", NINE + 4000)
    view._pause.value = False
    assert "<div>Record 4 of 4" in view._parts["story"].value, "new records are not, as there is no end to them"


def test_a_step_that_comes_while_the_view_looks_is_not_lost() -> None:
    stepper = Stepper(lambda: None)
    stepper.show(9)
    moving = threading.Thread(target=stepper._back.click)
    moving.start()
    moving.join(60)
    stepper.show(9)
    assert (stepper.of(9), stepper._slider.value) == (8, 8)
    stepper.release()
    stepper.show(10)
    assert (stepper.of(10), stepper._slider.value) == (10, 10)


@pytest.mark.parametrize(("topics", "is_told"), [(["orders"], False), (["orders", "returns"], True)])
def test_windows_of_several_topics_of_an_application_say_that_their_order_is_not_known(
    topics: list[str], is_told: bool, tmp_path: Path
) -> None:
    builder = StreamsBuilder()
    stream = builder.stream(topics, key=Serdes.string(), value=Serdes.string())
    stream.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace("5 seconds")).count("counts")
    view = WindowView(KafkaStreams(builder.build(), "app", "127.0.0.1:9", state_dir=tmp_path), "counts")
    assert ("here they are merged by their times" in view._caveat) is is_told


@pytest.mark.spark
def test_a_view_keeps_the_last_records_and_says_how_many_came_before(driver: TopologyTestDriver) -> None:
    view = WindowView(driver, "counts", records=2)
    driver.create_input_topic("orders").pipe_records([("KO", "x", NINE + number) for number in range(5)])
    view.refresh()
    assert "the last 2; 3 came before them" in view._header.value


@pytest.mark.spark
def test_a_driver_keeps_no_view_that_was_closed_or_that_nobody_has_any_more(driver: TopologyTestDriver) -> None:
    orders = driver.create_input_topic("orders")
    kept, closed = WindowView(driver, "counts"), WindowView(driver, "counts")
    forgotten = [DriverRecords(driver, ["orders"], keep=2) for _ in range(3)]
    assert len(driver._watchers) == 5
    closed.close()
    del forgotten
    gc.collect()
    orders.pipe_input("KO", "x", NINE)
    assert [*driver._watchers] == [kept._arrivals]
    for view in (closed, kept):
        view._arrivals.look()
    assert [view._arrivals.raw(0) for view in (closed, kept)] == [[], [Raw("orders", b"KO", b"x", NINE, (), 0)]]


@pytest.mark.spark
def test_a_view_of_a_join_shows_the_pairs_that_come_out() -> None:
    with TopologyTestDriver(joining_topology()) as driver:
        view = JoinView(driver)
        for topic, second in (("o", 1), ("p", 2), ("p", 9), ("o", 8), ("o", 40)):
            driver.create_input_topic(topic).pipe_input("KO", f"{topic}{second}", NINE + second * 1000)
        view.refresh()
        assert len(view._snapshot.pairs) == len(driver.create_output_topic("joined").read_records_to_list()) == 2
        assert "2 pairs met" in view._parts["story"].value


@pytest.mark.spark
def test_each_partition_of_a_driver_is_shown_with_its_own_stream_time() -> None:
    with TopologyTestDriver(counting_topology(), partitions=2) as driver:
        view = WindowView(driver, "counts", records=2)
        orders = driver.create_input_topic("orders")
        orders.pipe_input("KO", "x", NINE + 60_000, partition=0)
        for second in (3, 2, 1):
            orders.pipe_input("IBM", "x", NINE + second * 1000, partition=1)
        view.refresh()
        assert view._task.options == (("partition 0", 0), ("partition 1", 1))
        assert [step.arrival.key for step in view._snapshot.steps] == ["KO"]
        view._task.value = 1
        assert [(step.arrival.key, step.is_dropped) for step in view._snapshot.steps] == [("IBM", False)] * 2
        assert "the last 2; 1 came before them" in view._header.value
        assert driver.metrics() == {}


@pytest.mark.spark
def test_a_record_that_cannot_be_read_moves_no_stream_time_and_is_in_no_window() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=Serdes.string(), value=Serdes.json("n int"))
    orders.group_by_key().windowed_by(FIVE).count(Materialized("counts"))
    with TopologyTestDriver(builder.build(), deserialization_handler=LogAndContinue()) as driver:
        view = WindowView(driver, "counts")
        piped = driver.create_input_topic("orders", value=Serdes.byte_array())
        piped.pipe_input("KO", b'{"n": 1}', NINE + 1000)
        piped.pipe_input("poison", b"\xff\xfe", NINE + 3_600_000)
        piped.pipe_input("KO", b'{"n": 1}', NINE + 2000)
        view.refresh()
        assert [step.is_dropped for step in view._snapshot.steps] == [False, True, False]
        assert view._snapshot.steps[-1].windows == {Windowed("KO", NINE, NINE + 5000): 2}
        assert [row.value for row in driver.state_store("counts").all()] == [2]
        chart, story = view._parts["chart"].value, view._parts["story"].value
        assert "poison" not in chart
        assert "10:00" not in chart
        assert "what runs has counted 1 at KSTREAM-SOURCE-0000000000" in story
        assert "its key or value is not what the serde reads" in story


@pytest.mark.spark
def test_without_a_handler_a_record_that_cannot_be_read_is_counted_as_the_driver_counts_it() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=Serdes.string(), value=Serdes.json("n int"))
    orders.group_by_key().windowed_by(FIVE).count(Materialized("counts"))
    with TopologyTestDriver(builder.build()) as driver:
        view = WindowView(driver, "counts")
        piped = driver.create_input_topic("orders", value=Serdes.byte_array())
        piped.pipe_input("KO", b"\xff\xfe", NINE)
        view.refresh()
        assert view._snapshot.steps[-1].windows == {Windowed("KO", NINE, NINE + 5000): 1}
        assert [row.value for row in driver.state_store("counts").all()] == [1]


@pytest.mark.spark
def test_a_paused_view_of_a_driver_stands_still(driver: TopologyTestDriver) -> None:
    view = WindowView(driver, "counts", records=2)
    orders = driver.create_input_topic("orders")
    orders.pipe_records([(f"k{number}", "x", NINE) for number in range(3)])
    view.refresh()
    view._pause.value = True
    orders.pipe_input("k3", "x", NINE)
    view._search.value = "k"
    assert [step.arrival.key for step in view._snapshot.steps] == ["k1", "k2"]
    view._pause.value = False
    assert [step.arrival.key for step in view._snapshot.steps] == ["k2", "k3"]


def test_a_record_that_cannot_be_read_meets_no_other() -> None:
    poison = replace(at(3_600, side=1), refused=UNREADABLE)
    met = joined(at(1), poison, at(2, side=1))
    assert met.pairs == [(0, 2)]
    assert met.fates() == {(0, 0): "joined", (1, 1): "dropped", (1, 2): "joined"}
    assert "10:00:00" not in join_view.chart(met)
    assert "1 pair met; records: 2 joined, 1 dropped." in join_view.tell(met)
    assert "No record of orders that can be read has come" in join_view.chart(joined(poison))
    assert "No record of orders that can be read has come" in window_view.chart(windows(poison))


@pytest.mark.spark
def test_a_record_without_a_time_to_read_does_not_end_the_view() -> None:
    builder = StreamsBuilder()
    extractor = TimestampExtractor(lambda value: value["at"])
    orders = builder.stream("orders", key=Serdes.string(), value=Serdes.json("at bigint"), timestamps=extractor)
    orders.group_by_key().windowed_by(FIVE).count(Materialized("counts"))
    with TopologyTestDriver(builder.build(), deserialization_handler=LogAndContinue()) as driver:
        view = WindowView(driver, "counts", time=lambda value: value["at"])
        piped = driver.create_input_topic("orders", value=Serdes.byte_array())
        for value in (f'{{"at": {NINE}}}'.encode(), b"\xff", f'{{"at": {NINE + 1}}}'.encode()):
            piped.pipe_input("KO", value, 5)
        view.refresh()
        assert "● live" in view._header.value
        assert [step.stream_time for step in view._snapshot.steps] == [NINE, NINE, NINE + 1]


@pytest.mark.spark
def test_times_that_come_from_values_have_to_be_said_in_python() -> None:
    topology = counting_topology(TimestampExtractor.of(lambda v: v.cast("bigint")))
    with TopologyTestDriver(topology) as driver:
        with pytest.raises(ValueError, match="takes the time from each record's value"):
            WindowView(driver, "counts")
        view = WindowView(driver, "counts", time=int)
        driver.create_input_topic("orders").pipe_input("KO", str(NINE + 5000), 0)
        view.refresh()
        assert "stream time 09:00:05" in view._parts["chart"].value
