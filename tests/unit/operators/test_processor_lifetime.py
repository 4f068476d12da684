"""What a processor is from one micro-batch to the next, and after a new start."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from streamskit import Processor, ProcessorContext, PunctuationType, Record, StreamsError
from streamskit.operators.error_handling import read_attribution
from tests.unit.operators.processor_harness import Task, key_value
from tests.unit.operators.test_processor_routing import Pass, Peek, Write


class Count(Processor):
    """Forwards how many records it has seen, and how often it was initialized and closed."""

    def __init__(self) -> None:
        self.records = self.inits = self.closes = 0

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.inits += 1

    def process(self, record: Record) -> None:
        self.records += 1
        self.context.forward(record.with_value(f"{self.records} records, {self.inits} inits, {self.closes} closes"))

    def close(self) -> None:
        self.closes += 1


V = ("k", "v", 1)


def test_fields_are_kept_and_close_is_called_at_the_end_of_each_micro_batch() -> None:
    task = Task(Count)
    assert task.values(V, V) == ["1 records, 1 inits, 0 closes", "2 records, 1 inits, 0 closes"]
    assert task.values(V) == ["3 records, 1 inits, 1 closes"]


def test_an_init_that_keeps_the_context_to_itself_is_told_what_its_first_line_has_to_be() -> None:
    class Forgetful(Pass):
        def init(self, context: ProcessorContext) -> None:
            self.count = 0

    with pytest.raises(StreamsError, match=r"Forgetful has no context\. .* super\(\)\.init\(context\)"):
        Task(Forgetful).run(V)


def test_a_processor_has_the_context_that_a_test_gives_it() -> None:
    services: Any = object()
    processor, context = Pass(), ProcessorContext(services)
    processor.context = context
    assert processor.context is context


def test_a_new_start_begins_with_a_new_processor() -> None:
    task = Task(Count)
    task.values(V, V)
    task.restart()
    assert task.values(V) == ["1 records, 1 inits, 0 closes"]


def test_a_processor_that_asks_for_a_commit_goes_on_and_its_store_is_saved_at_the_end_of_the_micro_batch() -> None:
    class Asking(Processor):
        def process(self, record: Record) -> None:
            store = self.context.state_store("rows")
            store.put(record.key, f"{store.get(record.key) or ''}x")
            self.context.commit()
            self.context.forward(record.with_value(store.get(record.key)))

    task = Task(Asking, stores=[key_value()])
    assert [(where, value) for where, _, value, _ in task.run(V, V)] == [("out", "x"), ("out", "xx"), ("rows", b"xx")]
    task.restart()
    assert [value for where, _, value, _ in task.run(V) if where == "out"] == ["xxx"]


def test_stores_survive_a_new_start() -> None:
    class Number(Peek):
        count = 0

        def process(self, record: Record) -> None:
            self.count += 1
            self.store.put(record.key, f"{(self.store.get(record.key) or '')}{self.count}")
            super().process(record)

    task = Task(lambda: Number("rows"), stores=[key_value().with_logging(False)])
    assert task.values(V, V) == ["1", "12"]
    task.restart()
    assert task.values(V) == ["121"]


def test_each_processor_of_a_chain_has_its_own_fields() -> None:
    task = Task(Count, Pass, Count)
    task.run(V)
    assert task.values(V) == ["2 records, 1 inits, 1 closes"]


def test_fields_may_hold_the_context_stores_and_other_objects_that_hold_them() -> None:
    class Holding(Write):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.put = self.store.put
            self.nested = {"deep": [self.store, context, self]}

        def process(self, record: Record) -> None:
            self.put(record.key, record.value)
            store, context, me = self.nested["deep"]
            assert (store, context, me) == (self.store, self.context, self)
            context.forward(record.with_value(str(store.get(record.key))))

    task = Task(lambda: Holding("rows"), stores=[key_value().with_logging(False)])
    assert task.values(("k", "1", 1)) == ["1"]
    assert task.values(("k", "2", 2)) == ["2"]


def test_what_two_fields_share_they_go_on_sharing() -> None:
    class Shared(Pass):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.one = self.other = list[str]()

        def process(self, record: Record) -> None:
            self.one.append(record.value)
            self.context.forward(record.with_value(",".join(self.other)))

    task = Task(Shared)
    task.run(("k", "a", 1))
    assert task.values(("k", "b", 2)) == ["a,b"]


def test_fields_may_hold_functions_and_classes_made_on_the_spot() -> None:
    @dataclass
    class Point:
        x: int

    class Made(Pass):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.step = 10
            self.next: Callable[[Point], Point] = lambda point: Point(point.x + self.step)
            self.point = Point(0)

        def process(self, record: Record) -> None:
            self.point = self.next(self.point)
            self.step += 1
            self.context.forward(record.with_value(f"{self.point.x}"))

    task = Task(Made)
    assert [task.values(V) for _ in range(3)] == [["10"], ["21"], ["33"]]


def test_a_punctuation_written_as_a_lambda_sees_the_fields_as_they_are() -> None:
    class Lambda(Pass):
        count = 0

        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            tell = lambda time: context.forward(Record("tick", f"{self.count}", time))  # noqa: E731
            context.schedule(10, PunctuationType.STREAM_TIME, tell)

        def process(self, record: Record) -> None:
            self.count += 1

    task = Task(Lambda)
    assert [task.values((None, "", time)) for time in (5, 10, 20)] == [["1"], ["2"], ["3"]]


def test_a_schedule_in_a_field_is_the_one_that_happens() -> None:
    class Stoppable(Pass):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.schedule = context.schedule(10, PunctuationType.STREAM_TIME, self.tick)

        def tick(self, time: int) -> None:
            self.context.forward(Record("tick", f"{time}", time))

        def process(self, record: Record) -> None:
            if record.value == "stop":
                self.schedule.cancel()

    task = Task(Stoppable)
    assert task.values(("k", "", 5)) == ["5"]
    assert task.values(("k", "", 15)) == ["15"]
    assert task.values(("k", "stop", 25)) == []
    assert task.values(("k", "", 35)) == []


class Locked(Pass):
    def __init__(self, lock: Any) -> None:
        super().__init__()
        self.lock = lock


def test_a_field_that_cannot_be_kept_is_named_with_its_processor() -> None:
    with pytest.raises(StreamsError, match="processor-2: its field 'lock' is a lock, which cannot be kept") as raised:
        Task(Pass, lambda: Locked(threading.Lock())).run(V)
    found = read_attribution("\n".join(raised.value.__notes__))
    assert found is not None
    assert found.operator == "processor-2"


def test_an_iterator_of_a_store_cannot_be_kept() -> None:
    class Reading(Write):
        def process(self, record: Record) -> None:
            self.rows = self.store.all()

    with pytest.raises(StreamsError, match="its field 'rows' is a KeyValueIterator, which cannot be kept"):
        Task(lambda: Reading("rows"), stores=[key_value()]).run(V)


def test_what_close_lets_go_of_need_not_be_kept() -> None:
    class Opened(Pass):
        lock: Any = None

        def process(self, record: Record) -> None:
            self.lock = self.lock or threading.Lock()
            with self.lock:
                self.context.forward(record)

        def close(self) -> None:
            self.lock = None

    task = Task(Opened)
    assert [task.values(V), task.values(V)] == [["v"], ["v"]]


def test_a_punctuation_that_cannot_be_kept_is_a_sentence() -> None:
    class Closed(Pass):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            lock = threading.Lock()
            context.schedule(10, PunctuationType.STREAM_TIME, lambda time: lock.acquire())

    with pytest.raises(StreamsError, match="processor-2: a punctuation of it holds something that cannot be kept"):
        Task(Pass, Closed).run(("k", "v", 1))


def test_what_close_puts_and_forwards_is_not_lost() -> None:
    class Late(Write):
        def process(self, record: Record) -> None:
            self.last = record

        def close(self) -> None:
            self.store.put("closed", self.last.value)
            self.context.forward(self.last)

    task = Task(lambda: Late("rows"), stores=[key_value()])
    assert task.run(V) == [("out", "k", "v", 1), ("rows", b"closed", b"v", 1)]


def test_state_that_has_not_changed_is_not_written_again() -> None:
    task = Task(lambda: Peek("rows"), stores=[key_value()])
    task.run(V)
    task.run(V)
    before = task.pages.saves
    task.run(V)
    assert task.pages.saves == before
