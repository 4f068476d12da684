"""Punctuations: when they are due by stream time and by the wall clock, and when they end."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamskit import Cancellable, Processor, ProcessorContext, PunctuationType, Record, RecordMetadata, StreamsError
from streamskit.common.durations import Duration
from streamskit.operators import InputPort, OutputPort, ProcessorsOperator, ProcessorSpec, StreamTask
from streamskit.operators.punctuation import PunctuationQueue, Schedule
from tests.unit.operators.operator_harness import Pages
from tests.unit.operators.processor_harness import STRING, Task

STREAM_TIME, WALL_CLOCK_TIME = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME


class Ticker(Processor):
    """Forwards what each of its punctuations was told: its name and the time."""

    def __init__(self, *intervals: Duration, kind: PunctuationType = STREAM_TIME, calls: int = 0) -> None:
        self.intervals, self.kind, self.calls = intervals, kind, calls

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.schedules = [self.every(interval) for interval in self.intervals]

    def every(self, interval: Duration) -> Cancellable:
        return self.context.schedule(interval, self.kind, lambda time: self.tick(f"every {interval}", time))

    def tick(self, name: str, time: int) -> None:
        self.context.forward(Record(name, f"{time}", time))
        self.calls -= 1
        if not self.calls:
            self.schedules[0].cancel()

    def process(self, record: Record) -> None:
        return


def ticks(task: Task, *times: int, each: bool = True) -> list[list[str]]:
    """Return the values of what records of these times make, each a micro-batch of its own or all in one."""
    batches = [[time] for time in times] if each else [list(times)]
    return [task.values(*((None, "", time) for time in batch)) for batch in batches]


def test_by_stream_time_a_punctuation_is_due_at_the_first_record_and_at_each_multiple() -> None:
    assert ticks(Task(lambda: Ticker(100)), 5, 99, 100, 150, 201) == [["5"], [], ["100"], [], ["201"]]


@pytest.mark.parametrize(
    ("dues", "order"),
    [((0, 0), [0, 1]), ((0, 0, 0), [0, 2, 1]), ((0, 0, 0, 0), [0, 3, 1, 2]), ((5, 0, 5, 0), [1, 3, 0, 2])],
)
def test_those_due_at_one_time_take_turns_as_in_the_heap_of_java(dues: tuple[int, ...], order: list[int]) -> None:
    queue = PunctuationQueue()
    names = [str(number) for number in range(len(dues))]
    for name, due in zip(names, dues, strict=True):
        queue.add(Schedule(name, STREAM_TIME, 100, due, print))
    assert [int(schedule.processor) for schedule in queue.take_due(STREAM_TIME, 10)] == order
    again = PunctuationQueue()
    for name in reversed(names):  # whoever comes first
        again.put_back(queue.of([name]))
    assert [each.processor for each in again.schedules] == [each.processor for each in queue.schedules]
    assert again.next_due == {STREAM_TIME: 100, WALL_CLOCK_TIME: float("inf")}


def test_after_a_gap_it_happens_once() -> None:
    assert ticks(Task(lambda: Ticker(100)), 5, 1_070, 1_099, 1_100) == [["5"], ["1070"], [], ["1100"]]


def test_a_record_out_of_order_moves_nothing() -> None:
    assert ticks(Task(lambda: Ticker(100)), 250, 90, 130, 299) == [["250"], [], [], []]


def test_records_of_one_micro_batch_are_as_good_as_many_micro_batches() -> None:
    times = 5, 99, 100, 150, 201
    assert ticks(Task(lambda: Ticker(100)), *times, each=False) == [["5", "100", "201"]]


def test_a_punctuation_sees_the_record_that_brought_the_time() -> None:
    class Counting(Ticker):
        count = 0

        def tick(self, name: str, time: int) -> None:
            self.context.forward(Record(name, f"{self.count} by {time}", time))

        def process(self, record: Record) -> None:
            self.count += 1

    assert ticks(Task(lambda: Counting(100)), 5, 99, 100) == [["1 by 5"], [], ["3 by 100"]]


def test_several_punctuations_keep_their_own_time_and_the_earliest_due_comes_first() -> None:
    task = Task(lambda: Ticker("30 ms", "20 ms"))
    assert [made[0][1] for made in ([each] for each in task.run((None, "", 5)))] == ["every 30 ms", "every 20 ms"]
    # 20 was due before 30, although it was scheduled after it.
    assert [key for _, key, *_ in task.run((None, "", 35))] == ["every 20 ms", "every 30 ms"]
    assert [key for _, key, *_ in task.run((None, "", 45))] == ["every 20 ms"]


def test_a_punctuation_can_call_itself_off() -> None:
    assert ticks(Task(lambda: Ticker(100, calls=2)), 5, 100, 200, 300) == [["5"], ["100"], [], []]


def test_a_punctuation_can_call_off_another_that_is_due_at_the_same_time() -> None:
    class Only(Ticker):
        def tick(self, name: str, time: int) -> None:
            for schedule in self.schedules:
                schedule.cancel()
            self.context.forward(Record(name, f"{time}", time))

    assert ticks(Task(lambda: Only(100, 100)), 5, 100) == [["5"], []]


def test_a_punctuation_scheduled_while_a_record_is_processed_is_due_right_after_it() -> None:
    class Late(Ticker):
        def process(self, record: Record) -> None:
            if record.timestamp == 150:
                self.every(100)

    assert ticks(Task(lambda: Late()), 5, 150, 199, 200) == [[], ["150"], [], ["200"]]


def test_a_punctuation_scheduled_in_another_is_due_at_once() -> None:
    class Chain(Ticker):
        def tick(self, name: str, time: int) -> None:
            super().tick(name, time)
            if name == "every 100":
                self.schedules[0].cancel()
                self.every(10)

    assert ticks(Task(lambda: Chain(100)), 5, 6, 15) == [["5", "5"], [], ["15"]]


def test_a_punctuation_that_schedules_itself_without_end_is_a_sentence() -> None:
    class Again(Ticker):
        def tick(self, name: str, time: int) -> None:
            self.every(10)

    with pytest.raises(StreamsError, match="processor-1: its punctuation schedules another one whenever it is called"):
        Task(lambda: Again(10)).run(("k", "v", 5))


def test_in_a_punctuation_no_record_is_in_hand() -> None:
    seen: list[Any] = []

    class Look(Ticker):
        def tick(self, name: str, time: int) -> None:
            seen.append((self.context.record_metadata(), self.context.timestamp()))

    Task(lambda: Look(100)).run(("k", "v", 7))
    assert seen == [(RecordMetadata(None, -1, -1), 7)]


def test_by_the_wall_clock_a_punctuation_is_due_an_interval_after_it_was_scheduled() -> None:
    task, made = Task(lambda: Ticker(100, kind=WALL_CLOCK_TIME)), list[list[str]]()
    task.clock = 1_030
    task.run(("k", "v", 999_999))  # stream time is none of its business
    for clock in (1_129, 1_130, 1_229, 1_230, 1_500, 1_530):
        task.clock = clock
        made.append(task.values(tick=True))
    assert made == [[], ["1130"], [], ["1230"], ["1500"], ["1530"]]


def test_the_two_clocks_do_not_disturb_each_other() -> None:
    class Both(Ticker):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            context.schedule(100, WALL_CLOCK_TIME, lambda time: self.tick("by the wall clock", time))

    task = Task(lambda: Both(100))
    assert [made[1] for made in task.run(("k", "v", 5))] == ["every 100"]
    task.clock = 100
    assert [made[1] for made in task.run(tick=True)] == ["by the wall clock"]
    assert task.run(("k", "v", 50), tick=True) == []


def test_schedules_are_kept_until_a_new_start_and_then_begin_anew() -> None:
    task = Task(lambda: Ticker(100))
    assert ticks(task, 5, 150) == [["5"], ["150"]]
    task.restart()
    # Stream time is where it was, so that the new schedule is due before the first record.
    assert ticks(task, 160, 170) == [["150"], []]


def test_an_interval_that_is_none_is_a_sentence() -> None:
    with pytest.raises(StreamsError, match="processor-1: a punctuation every 0 ms is impossible"):
        Task(lambda: Ticker(0)).run(("k", "v", 1))


def independent(*intervals: Duration) -> Callable[[int], list[str]]:
    """Return a function that moves the stream time of a task, and returns which of its processors punctuate then.

    None feeds another or shares a store with it; each is named after its interval. Each call is a micro-batch.
    """
    names = [f"every {interval}" for interval in intervals]
    groups = [
        ProcessorsOperator(
            name,
            "app",
            (ProcessorSpec(name, partial(Ticker, interval), (), (("out", 0),)),),
            (InputPort(STRING, STRING, processor=name),),
            (OutputPort(STRING, STRING),),
        )
        for name, interval in zip(names, intervals, strict=True)
    ]
    pages = Pages()

    def move_to(now: int) -> list[str]:
        task = StreamTask(groups, pages)
        task.open_punctuating()
        task.punctuate(STREAM_TIME, now)
        task.finish()
        made = task.take_outputs()
        assert {output.timestamp for output in made} <= {now}
        return [names[output.operator] for output in made]

    return move_to


def test_processors_that_have_nothing_in_common_punctuate_in_the_order_in_which_they_are_due() -> None:
    move_to = independent("10 s", "4 s", "7 s")
    ten, four, seven = "every 10 s", "every 4 s", "every 7 s"
    assert [move_to(seconds * 1_000) for seconds in (0, 20, 21, 24, 60, 3_600)] == [
        [ten, seven, four], [four, seven, ten], [seven], [four], [seven, four, ten], [seven, four, ten],
    ]  # fmt: skip


def punctuated(times: list[int], interval: int, clock: Callable[[int, int], int]) -> list[int]:
    """Return when a punctuation happens: whenever the clock is in a later interval than when it last happened."""
    made, now, last = [], -1, -1
    for time in times:
        now = clock(now, time)
        if now // interval > last:
            made.append(now)
            last = now // interval
    return made


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 1_000), max_size=30), st.integers(1, 300), st.booleans())
def test_a_punctuation_happens_whenever_stream_time_comes_into_a_later_interval(
    times: list[int], interval: int, each: bool
) -> None:
    made = [int(value) for batch in ticks(Task(lambda: Ticker(interval)), *times, each=each) for value in batch]
    assert made == punctuated(times, interval, max)
