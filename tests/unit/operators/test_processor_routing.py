"""Where the records go that a processor forwards, what time it is on the way, and who is to blame when it fails."""

from typing import Any

import pytest

from streamskit import (
    FixedKeyProcessor,
    FixedKeyRecord,
    Processor,
    ProcessorContext,
    Record,
    RecordMetadata,
    StreamsError,
    ValueAndTimestamp,
)
from streamskit.operators.error_handling import read_attribution
from tests.unit.operators.processor_harness import LONG, Task, key_value


class Peek(Processor):
    """Tells what a store holds for a record's key, or (`change`) tries to change it."""

    def __init__(self, store: str, change: str = "") -> None:
        self.name, self.change = store, change

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.store = context.state_store(self.name)

    def process(self, record: Record) -> None:
        if self.change == "delete":
            self.store.delete(record.key)
        elif self.change:
            getattr(self.store, self.change)(record.key, ValueAndTimestamp("x", 0))
        self.context.forward(record.with_value(str(self.store.get(record.key))))


class Pass(Processor):
    """Passes records on, to a child if it is given one."""

    def __init__(self, to: str | None = None) -> None:
        self.to = to

    def process(self, record: Record) -> None:
        self.context.forward(record, self.to)


class Twice(Processor):
    """Passes each record on two times, with a letter after the value."""

    def __init__(self, letters: str) -> None:
        self.letters = letters

    def process(self, record: Record) -> None:
        for letter in self.letters:
            self.context.forward(record.with_value(record.value + letter))


def test_a_record_goes_to_all_children_or_to_the_one_that_is_named() -> None:
    assert Task(Pass, ways=["one", "two"]).run(("k", "v", 1)) == [("one", "k", "v", 1), ("two", "k", "v", 1)]
    assert Task(lambda: Pass("two"), ways=["one", "two"]).run(("k", "v", 1)) == [("two", "k", "v", 1)]


def test_a_child_that_is_not_there_is_a_sentence_with_those_that_are() -> None:
    with pytest.raises(
        StreamsError, match=r"processor-1 cannot forward to 'three': no step .*\. Its next steps: one, two"
    ):
        Task(lambda: Pass("three"), ways=["one", "two"]).run(("k", "v", 1))


def test_each_record_goes_all_the_way_before_the_next_is_forwarded() -> None:
    task = Task(lambda: Twice("ab"), lambda: Twice("xy"))
    assert task.values(("k", "", 1)) == ["ax", "ay", "bx", "by"]


def test_a_processor_without_children_may_forward() -> None:
    assert Task(Pass, ways=[]).run(("k", "v", 1)) == []


def test_key_value_time_and_headers_can_all_be_changed() -> None:
    class Change(Processor):
        def process(self, record: Record) -> None:
            self.context.forward(record.with_key("new").with_timestamp(7).with_headers((("name", b"bytes"),)))

    class Tell(Processor):
        def process(self, record: Record) -> None:
            self.context.forward(record.with_value(f"{record.headers}"))

    assert Task(Change, Tell).run(("k", "v", 1)) == [("out", "new", "(('name', b'bytes'),)", 7)]


class Clock(Processor):
    """Tells what time it is, and where the record in hand came from."""

    def process(self, record: Record) -> None:
        context = self.context
        said = f"{context.timestamp()} {context.current_stream_time_ms()} {context.record_metadata().offset}"
        self.context.forward(record.with_value(said))


def test_the_time_is_that_of_the_forwarded_record_and_the_place_that_of_the_source() -> None:
    class Earlier(Processor):
        def process(self, record: Record) -> None:
            self.context.forward(record.with_timestamp(record.timestamp - 1))
            assert self.context.timestamp() == record.timestamp

    assert Task(Earlier, Clock).values(("k", "", 10), ("k", "", 5)) == ["9 10 0", "4 10 1"]


def test_an_update_of_a_store_has_the_time_of_the_record_that_made_it() -> None:
    class Later(Processor):
        def process(self, record: Record) -> None:
            self.context.forward(record.with_timestamp(record.timestamp + 100))

    task = Task(Later, lambda: Write("rows"), stores=[key_value()], ways=())
    assert task.run(("k", "v", 1)) == [("rows", b"k", b"v", 101)]


class Write(Processor):
    """Puts each record into a store, and passes it on."""

    def __init__(self, store: str) -> None:
        self.name = store

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.store = context.state_store(self.name)

    def process(self, record: Record) -> None:
        self.store.put(record.key, record.value)
        self.context.forward(record)


def test_two_processors_share_a_store() -> None:
    task = Task(lambda: Write("rows"), lambda: Peek("rows"), stores=[key_value()])
    assert task.run(("k", "v", 1)) == [("out", "k", "v", 1), ("rows", b"k", b"v", 1)]


def test_a_store_that_was_not_given_is_a_sentence() -> None:
    task = Task(lambda: Peek("other"), stores=[key_value()])
    with pytest.raises(StreamsError, match=r"processor-1 has no store 'other'; it has: rows\. Name it in stores="):
        task.run(("k", "v", 1))


def test_the_metadata_of_a_record_name_its_topic_partition_and_offset() -> None:
    seen: list[Any] = []

    class Look(Processor):
        def process(self, record: Record) -> None:
            seen.append((self.context.record_metadata(), self.context.application_id))

    Task(Look).run(("k", "v", 1), ("k", "v", 2))
    assert seen == [(RecordMetadata("in", 0, 0), "app"), (RecordMetadata("in", 0, 1), "app")]


@pytest.mark.parametrize("timestamp", [-1, 2.5, None, "3"])
def test_a_record_refuses_a_time_that_is_none_where_the_processor_gives_it(timestamp: Any) -> None:
    class Careful(Processor):
        def process(self, record: Record) -> None:
            with pytest.raises(StreamsError, match=r"cannot have the timestamp .*; give it whole milliseconds"):
                record.with_timestamp(timestamp)
            self.context.forward(record)

    assert Task(Careful).run(("k", "v", 1)) == [("out", "k", "v", 1)]


# ---- fixed keys ------------------------------------------------------------------------------------------------------


def test_a_fixed_key_processor_changes_value_time_and_headers() -> None:
    class Change(FixedKeyProcessor):
        def process(self, record: FixedKeyRecord) -> None:
            assert isinstance(record, FixedKeyRecord)
            self.context.forward(record.with_value("new").with_timestamp(2).with_headers(()))

    assert Task(Change).run(("k", "v", 1)) == [("out", "k", "new", 2)]


def test_a_fixed_key_processor_may_forward_a_record_it_was_given_before() -> None:
    class Before(FixedKeyProcessor):
        last: FixedKeyRecord | None = None

        def process(self, record: FixedKeyRecord) -> None:
            if self.last is not None:
                self.context.forward(self.last)
            self.last = record

    task = Task(Before)
    assert task.run(("a", "1", 1)) == []
    assert task.run(("b", "2", 2)) == [("out", "a", "1", 1)]


@pytest.mark.parametrize(
    "made",
    [
        lambda record: FixedKeyRecord("other", record.value, record.timestamp),
        lambda record: Record(record.key, record.value, record.timestamp),
    ],
)
def test_a_fixed_key_processor_forwards_no_record_of_its_own_making(made: Any) -> None:
    class Other(FixedKeyProcessor):
        def process(self, record: FixedKeyRecord) -> None:
            self.context.forward(made(record))

    with pytest.raises(StreamsError, match=r"processor-1: a FixedKeyProcessor forwards the records that it is given"):
        Task(Other).run(("k", "v", 1))


# ---- who is to blame -------------------------------------------------------------------------------------------------


class Refuse(Processor):
    def process(self, record: Record) -> None:
        raise ValueError("no")


def blamed(failure: BaseException) -> Any:
    return read_attribution("\n".join(failure.__notes__))


def test_the_processor_that_failed_is_blamed_and_not_the_one_that_fed_it() -> None:
    with pytest.raises(ValueError, match="no") as raised:
        Task(Pass, Refuse, Pass).run(("k", "v", 1))
    assert blamed(raised.value).operator == "processor-2"


def test_a_value_that_no_way_out_can_write_is_blamed_with_its_serde() -> None:
    class Number(Processor):
        def process(self, record: Record) -> None:
            self.context.forward(record.with_value("not a number"))

    with pytest.raises((TypeError, ValueError, StreamsError)) as raised:
        Task(Pass, Number, value=LONG).run(("k", 1, 1))
    found = blamed(raised.value)
    assert (found.operator, found.verb, found.value) == ("processor-2", "write", "'not a number'")


def test_a_failing_init_names_its_processor() -> None:
    class Unready(Pass):
        def init(self, context: ProcessorContext) -> None:
            raise KeyError("no such setting")

    with pytest.raises(KeyError) as raised:
        Task(Pass, Unready).run(("k", "v", 1))
    assert blamed(raised.value).operator == "processor-2"


def test_a_failing_close_names_its_processor() -> None:
    class Stuck(Pass):
        def close(self) -> None:
            raise OSError("busy")

    with pytest.raises(OSError, match="busy") as raised:
        Task(Pass, Stuck).run(("k", "v", 1))
    assert blamed(raised.value).operator == "processor-2"


def test_a_supplier_that_makes_no_processor_is_a_sentence() -> None:
    with pytest.raises(StreamsError, match="processor-1: its supplier made a str, and has to make a Processor"):
        Task(lambda: "no processor").run(("k", "v", 1))  # type: ignore[arg-type, return-value]
