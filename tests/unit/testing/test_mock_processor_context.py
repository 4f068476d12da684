"""`MockProcessorContext`: a single processor, called by a plain test, does what it does in a topology."""

import subprocess
import sys
from typing import Any

import pytest

from streamskit import (
    FixedKeyProcessor,
    FixedKeyRecord,
    Processor,
    PunctuationType,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsError,
    TopologyTestDriver,
    ValueAndTimestamp,
    ValueTransformerWithKey,
)
from streamskit.testing import CapturedForward, MockProcessorContext

STRING, LONG = Serdes.string(), Serdes.long()
TOTALS = Stores.persistent_key_value_store("totals", STRING, LONG)


class Total(Processor):
    def init(self, context: Any) -> None:
        super().init(context)
        self.totals = context.state_store("totals")
        context.schedule("1 minute", PunctuationType.STREAM_TIME, self.report)

    def process(self, record: Record) -> None:
        total = (self.totals.get(record.key) or 0) + record.value
        self.totals.put(record.key, total)
        self.context.forward(record.with_value(total))

    def report(self, time: int) -> None:
        for key, total in self.totals.all():
            self.context.forward(Record(f"report {key}", total, time))


def started(processor: Any, *stores: Any) -> tuple[Any, MockProcessorContext]:
    context = MockProcessorContext()
    for store in stores:
        context.add_state_store(store)
    processor.init(context)
    return processor, context


def test_a_processor_forwards_the_same_as_in_a_topology() -> None:
    records = [("KO", 2, 0), ("PEP", 3, 5), ("KO", 4, 10)]
    total, context = started(Total(), TOTALS)
    for record in records:
        total.process(Record(*record))
    builder = StreamsBuilder()
    builder.stream("in", value=LONG).process(Total, stores=[TOTALS]).to("out", value=LONG)
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_records(records)
        expected = [record[:3] for record in driver.create_output_topic("out").read_records_to_list()]
    forwarded = [(each.record.key, each.record.value, each.record.timestamp) for each in context.forwarded()]
    assert forwarded == [row for row in expected if not row[0].startswith("report")] == [
        ("KO", 2, 0), ("PEP", 3, 5), ("KO", 6, 10),
    ]  # fmt: skip


def test_punctuations_are_captured_and_called_by_the_test() -> None:
    total, context = started(Total(), TOTALS)
    total.process(Record("KO", 2, 0))
    context.reset_forwards()
    [captured] = context.scheduled_punctuators()
    assert (captured.interval, captured.kind) == (60_000, PunctuationType.STREAM_TIME)
    captured.punctuator(60_000)
    assert context.forwarded() == [CapturedForward(Record("report KO", 2, 60_000))]


def test_a_punctuation_that_the_processor_cancels_says_so() -> None:
    context = MockProcessorContext()
    context.schedule("1 s", PunctuationType.WALL_CLOCK_TIME, print).cancel()
    assert [captured.is_cancelled for captured in context.scheduled_punctuators()] == [True]


def test_a_child_gets_what_names_it_and_what_goes_to_all() -> None:
    context = MockProcessorContext()
    for value, child in ((1, None), (2, "audit"), (3, "alarms")):
        context.forward(Record("KO", value, 0), to=child)
    assert [each.record.value for each in context.forwarded()] == [1, 2, 3]
    assert [each.record.value for each in context.forwarded("audit")] == [1, 2]
    assert [each.record.value for each in context.forwarded("nobody")] == [1]
    assert context.forwarded()[1].child == "audit"


def test_the_test_fills_and_reads_the_stores() -> None:
    context = MockProcessorContext()
    totals = context.add_state_store(TOTALS)
    totals.put("KO", 40)
    total = Total()
    total.init(context)
    total.process(Record("KO", 2, 0))
    assert totals.get("KO") == 42
    assert context.state_store("totals") is totals


@pytest.mark.parametrize(
    ("store", "put", "read", "expected"),
    [
        (Stores.lru_map("s", 1, STRING, LONG), [("a", 1), ("b", 2)], lambda s: [*s.all()], [("b", 2)]),
        (
            Stores.persistent_timestamped_key_value_store("s", STRING, LONG),
            [("a", ValueAndTimestamp(1, 5))],
            lambda s: s.get("a"),
            ValueAndTimestamp(1, 5),
        ),
        (
            Stores.persistent_window_store("s", "1 hour", "1 minute", STRING, LONG),
            [("a", 1, 0), ("a", 2, 60_000)],
            lambda s: [*s.fetch("a", 0, 60_000)],
            [(0, 1), (60_000, 2)],
        ),
        (
            Stores.persistent_versioned_key_value_store("s", "1 hour", STRING, LONG),
            [("a", 1, 0), ("a", 2, 60_000)],
            lambda s: (s.get("a").value, s.get("a", 59_999).value),
            (2, 1),
        ),
    ],
    ids=["lru", "timestamped", "window", "versioned"],
)
def test_each_kind_of_store_works(store: Any, put: list[tuple[Any, ...]], read: Any, expected: Any) -> None:
    opened = MockProcessorContext().add_state_store(store)
    for row in put:
        opened.put(*row)
    assert read(opened) == expected


def test_a_commit_is_noted() -> None:
    context = MockProcessorContext()
    assert not context.committed()
    context.commit()
    assert context.committed()
    context.reset_commit()
    assert not context.committed()


def test_clocks_show_what_the_test_sets() -> None:
    context = MockProcessorContext("orders", task_id="1_2")
    context.set_current_stream_time_ms(5)
    context.set_current_system_time_ms(7)
    context.set_timestamp(3)
    context.set_record_metadata("in", 1, 9)
    assert (context.current_stream_time_ms(), context.current_system_time_ms(), context.timestamp()) == (5, 7, 3)
    assert context.record_metadata() == ("in", 1, 9)
    assert (context.application_id, context.task_id, MockProcessorContext().task_id) == ("orders", "1_2", "0_0")


def test_a_record_is_from_nowhere_until_the_test_says_where() -> None:
    assert MockProcessorContext().record_metadata() == (None, -1, -1)


@pytest.mark.parametrize("clock", ["current_stream_time_ms", "current_system_time_ms", "timestamp"])
def test_a_clock_that_was_not_set_says_how_to_set_it(clock: str) -> None:
    with pytest.raises(StreamsError, match=rf"{clock}\(\) has no time, .* set_{clock}\(milliseconds\)"):
        getattr(MockProcessorContext(), clock)()


def test_other_kinds_of_processors_run_in_it() -> None:
    class Doubled(FixedKeyProcessor):
        def process(self, record: FixedKeyRecord) -> None:
            self.context.forward(record.with_value(record.value * 2))

    class Numbered(ValueTransformerWithKey):
        def transform(self, key: Any, value: Any) -> Any:
            return f"{key}: {value}"

    doubled, context = started(Doubled())
    doubled.process(FixedKeyRecord("KO", 2, 0))
    assert [each.record.value for each in context.forwarded()] == [4]
    numbered, _ = started(Numbered())
    assert numbered.transform("KO", 1) == "KO: 1"


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda c: c.state_store("totals"), r"no store 'totals': give it one before init\(\).*It has: none"),
        (lambda c: c.forward(("KO", 1)), r"forward\(\) passes on a record, and \('KO', 1\) is none"),
        (lambda c: c.add_state_store("totals"), r"add_state_store\(\) takes a store that Stores makes"),
        (lambda c: [c.add_state_store(TOTALS) for _ in range(2)], "has a store 'totals' already"),
        (lambda c: c.schedule(0, PunctuationType.STREAM_TIME, print), "at least 1 ms"),
        (lambda c: c.set_current_stream_time_ms("9:00"), "takes whole milliseconds since 1970, and '9:00' is none"),
    ],
    ids=["unknown store", "no record", "no store", "store twice", "no interval", "no time"],
)
def test_a_wrong_call_is_told(ask: Any, sentence: str) -> None:
    with pytest.raises(StreamsError, match=sentence):
        ask(MockProcessorContext())


def test_neither_java_nor_spark_is_started() -> None:
    program = (
        "from streamskit import Processor, Record, Serdes, Stores\n"
        "from streamskit.testing import MockProcessorContext\n"
        "context = MockProcessorContext()\n"
        "store = context.add_state_store(Stores.in_memory_key_value_store('s', Serdes.string(), Serdes.long()))\n"
        "store.put('a', 1)\n"
        "context.forward(Record('a', store.get('a'), 0))\n"
        "from pyspark import SparkContext\n"
        "print(len(context.forwarded()), SparkContext._gateway, SparkContext._active_spark_context)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["1", "None", "None"], done.stderr
