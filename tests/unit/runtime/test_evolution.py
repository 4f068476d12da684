"""A topology that has changed since the last start goes on where its state fits, and else is refused."""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from streamskit import (
    FixedKeyProcessor,
    FixedKeyRecord,
    JoinWindows,
    Processor,
    Record,
    Serdes,
    SessionWindows,
    Stores,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
)
from streamskit.course.labs.exercises.risk_management_mission import ANOTHER_STEP
from streamskit.course.labs.missions import A_PROCESSOR
from streamskit.dsl.kstream import KStream
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan
from streamskit.runtime.recovery.evolution import check
from streamskit.runtime.recovery.fingerprint import FILE, Fingerprint, OperatorPrint, QueryPrint

LONG, TEXT = Serdes.long(), Serdes.string()

Write = Callable[[StreamsBuilder], Any]


def prints(write: Write, tasks: int = 2, cache: bool = True) -> dict[str, QueryPrint]:
    builder = StreamsBuilder()
    write(builder)
    plans = plan(builder.build(), "app", QueryOptions(cache))
    return {each.name: QueryPrint.of(each, each.tasks(defaultdict(lambda: tasks))) for each in plans}


def refusal(before: Write, now: Write, **options: Any) -> str:
    """Return what is said of a change."""
    with pytest.raises(StreamsError) as refused:
        check("app", Path("folder"), prints(before), prints(now, **options))
    return str(refused.value)


def goes_on(before: Write, now: Write, **options: Any) -> bool:
    check("app", Path("folder"), prints(before), prints(now, **options))
    return True


def add(one: int, other: int) -> int:
    return one + other


def numbers(builder: StreamsBuilder, *topics: str) -> KStream:
    return builder.stream(*topics or ("in",), value=LONG)


def total(builder: StreamsBuilder) -> None:
    numbers(builder).group_by_key().reduce(add, "totals").to_stream().to("out")


# What is compatible.


def test_the_same_topology_goes_on() -> None:
    assert goes_on(total, total)


def test_other_functions_and_another_sink_go_on() -> None:
    def other(builder: StreamsBuilder) -> None:
        made = numbers(builder).group_by_key().reduce(lambda one, two: max(one, two), "totals")
        made.to_stream().to("out")
        made.to_stream().to("out-too")

    assert goes_on(total, other)


def test_a_sub_topology_behind_the_others_goes_on_and_so_does_one_less() -> None:
    def more(builder: StreamsBuilder) -> None:
        total(builder)
        builder.stream("another").group_by_key().count("counts")

    assert goes_on(total, more)
    assert goes_on(more, total)


def test_a_step_before_spark_s_own_count_goes_on_since_spark_numbers_its_state() -> None:
    def count(builder: StreamsBuilder) -> None:
        numbers(builder).group_by_key().count("counts")

    def count_after_a_step(builder: StreamsBuilder) -> None:
        numbers(builder).peek(print, name="look").group_by_key().count("counts")

    assert goes_on(count, count_after_a_step)


def test_more_patience_for_late_records_goes_on() -> None:
    def windows(grace: str) -> Write:
        window = TimeWindows.of_size_and_grace("5 seconds", grace)
        return lambda builder: numbers(builder).group_by_key().windowed_by(window).reduce(add, "totals")

    assert goes_on(windows("1 second"), windows("1 minute"))


def test_more_patience_is_refused_where_spark_has_forgotten_the_windows_that_closed_and_less_goes_on() -> None:
    def windows(grace: str) -> Write:
        window = TimeWindows.of_size_and_grace("5 seconds", grace)
        return lambda builder: numbers(builder).group_by_key().windowed_by(window).count("counts")

    said = refusal(windows("1 second"), windows("1 minute"))
    assert (
        "closed windows 1 s after their end (KSTREAM-AGGREGATE-0000000001) and now has a grace of 1 min, but "
        "what was counted in closed windows is forgotten" in said
    )
    assert goes_on(windows("1 minute"), windows("1 second"))


def test_a_topic_without_state_may_get_more_partitions() -> None:
    assert goes_on(lambda b: numbers(b).to("out"), lambda b: numbers(b).to("out"), tasks=4)


# What is not.


def test_counts_that_earlier_versions_kept_for_both_zeros_in_common_are_not_taken_over() -> None:
    def by(key: Any) -> OperatorPrint:
        (made,) = prints(lambda b: b.stream("in", key=key).group_by_key().count("counts"))["0"].operators
        return made

    assert by(Serdes.json("at double")).kind == by(Serdes.double()).kind == "Count by Spark, 0.0 and -0.0 apart"
    assert by(LONG).kind == "Count by Spark"


def test_another_operator_is_refused_with_both_names() -> None:
    said = refusal(total, lambda b: numbers(b).group_by_key().count("totals").to_stream().to("out"))
    assert "'app' has changed, and what is kept in folder no longer matches it: sub-topology 0 kept the" in said
    assert "of KSTREAM-REDUCE-0000000001 (Reduce) and now keeps that of KSTREAM-AGGREGATE-0000000001 (Count" in said
    assert "clean_up() forgets what was kept" in said


def test_no_operator_any_more_is_refused() -> None:
    assert "now keeps that of no operator" in refusal(total, lambda b: numbers(b).to("out"))


def test_another_operator_beside_it_is_refused() -> None:
    def and_a_maximum(builder: StreamsBuilder) -> None:
        stream = numbers(builder).group_by_key()
        stream.reduce(add, "totals").to_stream().to("out")
        stream.reduce(max, "maxima")

    said = refusal(total, and_a_maximum)
    assert "KSTREAM-REDUCE-0000000001 (Reduce), KSTREAM-REDUCE-0000000004 (Reduce)" in said


def test_a_number_that_moved_is_explained_and_the_advice_keeps_the_state() -> None:
    def after_a_step(name: str | None) -> Write:
        return lambda b: numbers(b).peek(print).group_by_key().reduce(add, "totals", name=name).to_stream().to("out")

    said = refusal(total, after_a_step(None))
    advised = re.search(r"Name those with state, .*: name='(.+)' gives this one its state back", said)
    assert advised is not None, said
    assert goes_on(total, after_a_step(advised[1]))
    assert ANOTHER_STEP in said  # by which lab 21 knows the mistake


def test_a_processor_without_a_store_counts_as_one_with_state() -> None:
    class Look(FixedKeyProcessor):
        def process(self, record: FixedKeyRecord) -> None:
            self.context.forward(record)

    def looked_at(builder: StreamsBuilder) -> None:
        numbers(builder).process_values(Look, name="look", value=LONG).to("out")

    said = refusal(lambda b: numbers(b).map_values(lambda v: v, name="look").to("out"), looked_at)
    assert "kept the state of no operator and now keeps that of look (Process)" in said
    assert A_PROCESSOR in said  # by which labs 19 and 21 know the mistake
    assert ANOTHER_STEP not in said


def test_another_serde_of_what_is_kept_is_refused_with_both() -> None:
    def of(value: Any) -> Write:
        return lambda b: b.stream("in", value=value).group_by_key().reduce(add, "totals")

    said = refusal(of(LONG), of(Serdes.double()))
    assert "Serdes.string() and Serdes.long()) and now KSTREAM-REDUCE" in said
    assert "Serdes.string() and Serdes.double())" in said


def test_other_windows_are_refused() -> None:
    def windows(size: str) -> Write:
        window = TimeWindows.of_size_with_no_grace(size)
        return lambda builder: numbers(builder).group_by_key().windowed_by(window).reduce(add, "totals")

    said = refusal(windows("5 seconds"), windows("1 minute"))
    assert "in TimeWindows(size=5000, advance=5000)) and now" in said
    gap = SessionWindows.of_inactivity_gap_with_no_grace("5 seconds")
    refusal(windows("5 seconds"), lambda b: numbers(b).group_by_key().windowed_by(gap).reduce(add, "totals"))


def test_spark_s_count_and_one_without_the_record_cache_are_two_operators() -> None:
    def count(builder: StreamsBuilder) -> None:
        numbers(builder).group_by_key().count("counts")

    assert "(Count by Spark) and now keeps that of" in refusal(count, count, cache=False)


def test_a_switched_off_record_cache_is_told_as_a_setting_and_not_as_a_changed_program() -> None:
    def count(builder: StreamsBuilder) -> None:
        numbers(builder).group_by_key().count("counts")

    said = refusal(count, count, cache=False)
    assert "The topology of" not in said
    assert "has the same steps as before" in said
    assert "Did statestore_cache_max_bytes, real_time" in said

    def other(builder: StreamsBuilder) -> None:
        numbers(builder).group_by_key().reduce(add, "counts")

    assert "The topology of 'app' has changed" in refusal(count, other)


def test_other_topics_are_refused() -> None:
    said = refusal(total, lambda b: numbers(b, "in-too").group_by_key().reduce(add, "totals").to_stream().to("out"))
    assert "sub-topology 0 read 'in' and now reads 'in-too' instead" in said


def from_topics(*topics: str) -> Write:
    return lambda b: numbers(b, *topics).group_by_key().reduce(add, "totals").to_stream().to("out")


def test_a_topic_less_is_refused_where_there_is_state() -> None:
    said = refusal(from_topics("a", "b"), from_topics("a"))
    assert "read 'b' and does so no more" in said


def test_without_state_one_topic_less_goes_on_unless_another_query_reads_it_now() -> None:
    before, now = prints(lambda b: b.stream("a", "b").to("out")), prints(lambda b: b.stream("a").to("out"))
    check("app", Path("folder"), before, now, read={"a"})
    with pytest.raises(StreamsError, match="read 'b' and does so no more"):
        check("app", Path("folder"), before, now, read={"a", "b"})
    assert "read 'a', 'b' and now reads 'c' instead" in refusal(
        lambda b: b.stream("a", "b").to("out"), lambda b: b.stream("c").to("out")
    )


def test_another_number_of_partitions_is_refused_where_keys_have_state() -> None:
    said = refusal(total, total, tasks=4)
    assert said.startswith(
        "The topics of sub-topology 0 of 'app' ('in') have 4 partitions now, and it keeps state of 2"
    )
    fewer = refusal(total, total, tasks=1)
    assert "have 1 partition now, and it keeps state of 2: the topic that had so many is gone." in fewer


def test_a_store_that_would_begin_in_the_middle_is_refused() -> None:
    said = refusal(lambda b: numbers(b).group_by_key().reduce(add).to_stream().to("out"), total)
    assert "has a new store 'totals', which would lack all that was read before" in said


def test_sub_topologies_that_changed_places_are_recognized() -> None:
    def before(builder: StreamsBuilder) -> None:
        builder.stream("another").to("elsewhere")
        total(builder)

    said = refusal(total, before)
    assert "sub-topology 0 is number 1 now: write new parts of the program after the old ones" in said


class Counting(Processor):
    def process(self, record: Record) -> None:
        self.context.state_store("seen").put(record.key, 1)


def test_a_processor_s_store_with_other_types_is_refused() -> None:
    def of(value: Any) -> Write:
        store = Stores.persistent_key_value_store("seen", TEXT, value)
        return lambda builder: builder.stream("in").process(Counting, stores=[store])

    said = refusal(of(LONG), of(Serdes.integer()))
    assert "store 'seen' (key-value) of Serdes.string() and Serdes.integer()" in said


def test_another_choice_of_partitions_before_what_is_kept_is_told() -> None:
    def shared_out_by(partitioner: Any, counts: bool = True) -> Write:
        def write(builder: StreamsBuilder) -> None:
            spread = builder.stream("in").repartition("spread", partitioner=partitioner)
            spread.to("out")
            if counts:
                spread.group_by_key().count("counts")

        return write

    def to_the_first(topic: str, key: str, value: str, num_partitions: int) -> int:
        return 0

    said = refusal(shared_out_by(None), shared_out_by(to_the_first))
    assert (
        "sub-topology 1.1 read records in the partitions that their keys alone had chosen, and now a partitioner"
        in said
    )
    assert goes_on(shared_out_by(None, counts=False), shared_out_by(to_the_first, counts=False))
    assert goes_on(shared_out_by(to_the_first), shared_out_by(lambda topic, key, value, num_partitions: 1))


def sums(*topics: str) -> Write:
    """Sums of two topics in one sub-topology, written in this order."""

    def write(builder: StreamsBuilder) -> None:
        made = {each: numbers(builder, each).group_by_key().reduce(add, f"{each}-sums") for each in topics}
        made["a"].join(made["b"], lambda left, right: left + right).to_stream().to("out")

    return write


def test_steps_of_one_kind_that_changed_places_would_take_each_other_s_rows_and_are_refused() -> None:
    said = refusal(sums("a", "b"), sums("b", "a"))
    assert (
        "sub-topology 0 filled store 'a-sums' by KSTREAM-REDUCE-0000000001 and now does so by "
        "KSTREAM-REDUCE-0000000003, and kept records of 'a' in KSTREAM-REDUCE-0000000001 where it now keeps those of "
        "'b', and filled store 'b-sums'"
    ) in said
    assert said.endswith("write them in the order that they had, and the two sides of a join where they were.")


def test_stores_of_one_stream_that_changed_places_are_refused() -> None:
    def both(*functions: Any) -> Write:
        def write(builder: StreamsBuilder) -> None:
            stream = numbers(builder).group_by_key()
            for each in functions:
                stream.reduce(each, each.__name__)

        return write

    assert "filled store 'add' by KSTREAM-REDUCE-0000000001" in refusal(both(add, max), both(max, add))


@pytest.mark.parametrize("kind", ["tables", "streams", "stream and table"])
def test_a_join_whose_sides_changed_places_is_refused(kind: str) -> None:
    def joined(*sides: str) -> Write:
        def write(builder: StreamsBuilder) -> None:
            topics = {each: numbers(builder, each) for each in ("a", "b")}
            if kind == "streams":
                windows = JoinWindows.of_time_difference_with_no_grace("1 second")
                topics[sides[0]].join(topics[sides[1]], add, windows).to("out")
            elif kind == "tables":
                left, right = (topics[each].to_table(name=f"{each}-table") for each in sides)
                left.join(right, add, name="joined").to_stream().to("out")
            else:
                table = topics[sides[1]].to_table(name="table")
                topics[sides[0]].join(table, add, name="joined").to("out")

        return write

    assert "kept records of 'a' in" in refusal(joined("a", "b"), joined("b", "a"))
    assert goes_on(joined("a", "b"), joined("a", "b"))


def test_one_topic_more_for_a_step_with_state_goes_on() -> None:
    assert goes_on(from_topics("a"), from_topics("a", "b"))


def test_the_streams_of_a_cogroup_share_their_rows_and_may_change_places() -> None:
    def cogrouped(*topics: str) -> Write:
        def write(builder: StreamsBuilder) -> None:
            first, second = (numbers(builder, each).group_by_key() for each in topics)
            total = first.cogroup(lambda k, v, total: total + v).cogroup(second, lambda k, v, total: total + v)
            total.aggregate(lambda: 0, "totals", value=LONG)

        return write

    assert goes_on(cogrouped("a", "b"), cogrouped("b", "a"))


def test_a_note_of_an_earlier_version_says_nothing_of_stores_and_sides_and_goes_on() -> None:
    said = {name: asdict(each) for name, each in prints(sums("a", "b")).items()}
    for query in said.values():
        query["operators"] = [
            {name: each for name, each in operator.items() if name not in ("stores", "sides")}
            for operator in query["operators"]
        ]
    check(
        "app", Path("folder"), {name: QueryPrint.from_json(each) for name, each in said.items()}, prints(sums("a", "b"))
    )


# The file.


def test_what_is_noted_is_read_again(tmp_path: Path) -> None:
    noted = Fingerprint(prints(total), {"in": "an-id"})
    noted.save(tmp_path)
    assert Fingerprint.load(tmp_path) == noted


def test_rows_that_an_earlier_version_kept_in_another_way_are_refused(tmp_path: Path) -> None:
    Fingerprint(prints(total, cache=False)).save(tmp_path)
    file = tmp_path / FILE
    file.write_text(file.read_text().replace('"version": 2', '"version": 1'))
    with pytest.raises(StreamsError, match="written by an earlier version of streamskit"):
        Fingerprint.load(tmp_path)


def test_what_was_noted_under_an_earlier_name_is_read(tmp_path: Path) -> None:
    noted = Fingerprint(prints(total))
    noted.save(tmp_path)
    file = tmp_path / FILE
    file.write_text(file.read_text().replace('"uses_wall_clock"', '"hears_clock"'))
    assert "hears_clock" in file.read_text()
    assert Fingerprint.load(tmp_path) == noted


def test_a_folder_without_a_note_is_older_and_goes_on(tmp_path: Path) -> None:
    assert Fingerprint.load(tmp_path) == Fingerprint()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"queries": {"0": {}}, "topics": {}}'])
def test_a_damaged_note_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(StreamsError, match=r"topology\.json is damaged: .*If you have changed nothing since then"):
        Fingerprint.load(tmp_path)
