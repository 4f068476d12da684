"""Wrong answers that are typical for processors: each is told what is misunderstood."""

from typing import Any

import pytest

from streamskit import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    Topology,
    ValueAndTimestamp,
)
from tests.labs.wrong_answers import misconception, one_more

pytestmark = pytest.mark.spark

STRING, LONG, DOUBLE = Serdes.string(), Serdes.long(), Serdes.double()
STREAM, WALL = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME

# ---- 1: the stops of a trip ------------------------------------------------------------------------------------------


class Stops(Processor):
    """Counts in its store; the others below do something else in one place."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.stops = context.state_store("stops")

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        if record.value is None:
            before = self.stops.delete(record.key)
            self.context.forward(record.with_value(None if before is None else -before))
        else:
            self.arrive(record)

    def arrive(self, record: Record) -> None:
        count = (self.stops.get(record.key) or 0) + 1
        self.stops.put(record.key, count)
        self.context.forward(record.with_value(count))


def mistaken_stops(processor: Any, connected: bool = True) -> str:
    def stops_of_a_trip(builder: StreamsBuilder) -> None:
        store = Stores.persistent_key_value_store("stops", STRING, LONG)
        stream = builder.stream("truck-stops")
        stream.process(processor, stores=[store] if connected else [], value=LONG).to("stop-counts")

    return misconception("stops_of_a_trip", stops_of_a_trip)


def test_counts_in_a_dict_of_the_processor() -> None:
    class InADict(Stops):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.counts: dict[str, int] = {}

        def process(self, record: Record) -> None:
            if record.key is None:
                return
            if record.value is None:
                before = self.counts.pop(record.key, None)
                self.context.forward(record.with_value(None if before is None else -before))
                return
            self.counts[record.key] = self.counts.get(record.key, 0) + 1
            self.context.forward(record.with_value(self.counts[record.key]))

    assert mistaken_stops(InADict) == "state in a field"


def test_a_counter_that_all_trucks_share() -> None:
    class OneCounter(Stops):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.count = 0

        def arrive(self, record: Record) -> None:
            self.count += 1
            self.stops.put(record.key, self.count)
            self.context.forward(record.with_value(self.count))

    assert mistaken_stops(OneCounter) == "one count for all keys"


def test_a_store_that_the_step_does_not_name() -> None:
    assert mistaken_stops(Stops, connected=False) == "store not connected"


@one_more
def test_a_result_returned_and_not_forwarded() -> None:
    class Returns(Stops):
        def process(self, record: Record) -> Any:
            if record.key is None:
                return None
            if record.value is None:
                return self.stops.delete(record.key)
            self.stops.put(record.key, (self.stops.get(record.key) or 0) + 1)
            return record.with_value(self.stops.get(record.key))

    assert mistaken_stops(Returns) == "forward forgotten"


def test_a_record_without_a_key() -> None:
    class AnyKey(Stops):
        def process(self, record: Record) -> None:
            if record.value is None:
                super().process(record)
            else:
                self.arrive(record)

    assert mistaken_stops(AnyKey) == "null key not handled"


@one_more
def test_a_trip_that_never_ends() -> None:
    class GoesOn(Stops):
        def process(self, record: Record) -> None:
            if record.key is not None and record.value is None:
                before = self.stops.get(record.key)
                self.context.forward(record.with_value(-before))
            else:
                super().process(record)

    assert mistaken_stops(GoesOn) == "row not deleted"


@one_more
def test_stream_time_for_the_records_own() -> None:
    class Later(Stops):
        def arrive(self, record: Record) -> None:
            count = (self.stops.get(record.key) or 0) + 1
            self.stops.put(record.key, count)
            self.context.forward(Record(record.key, count, self.context.current_stream_time_ms()))

    assert mistaken_stops(Later) == "timestamp of the forwarded record"


def test_a_record_that_is_changed() -> None:
    class InPlace(Stops):
        def arrive(self, record: Any) -> None:
            record.value = (self.stops.get(record.key) or 0) + 1
            self.stops.put(record.key, record.value)
            self.context.forward(record)

    assert mistaken_stops(InPlace) == "record changed in place"


# ---- 2: pallets ------------------------------------------------------------------------------------------------------


class Ramp(Processor):
    """Sorts as it should; the others below do something else in one place."""

    def process(self, record: Record) -> None:
        if record.value is None:
            self.context.forward(record, to="log")
        elif record.value < 0:
            self.unloaded(record)
        else:
            self.context.forward(record)

    def unloaded(self, record: Record) -> None:
        self.context.forward(record.with_value(-record.value), to="moved")
        self.context.forward(record, to="log")


def mistaken_pallets(processor: Any) -> str:
    def pallets_by_hand() -> Topology:
        topology = Topology().add_source("ramp", "pallets", value=LONG).add_processor("sort", processor, "ramp")
        for sink, topic in (("loaded", "loaded-pallets"), ("moved", "moved-pallets"), ("log", "pallet-log")):
            topology.add_sink(sink, topic, "sort", value=LONG)
        return topology

    return misconception("pallets_by_hand", pallets_by_hand)


def test_forward_without_a_child() -> None:
    class ToAll(Processor):
        def process(self, record: Record) -> None:
            self.context.forward(record)

    assert mistaken_pallets(ToAll) == "forward to all children"


def test_forward_to_the_wrong_child() -> None:
    class Swapped(Ramp):
        def unloaded(self, record: Record) -> None:
            self.context.forward(record.with_value(-record.value), to="loaded")
            self.context.forward(record, to="log")

    assert mistaken_pallets(Swapped) == "forward to the wrong child"


@one_more
def test_a_topic_in_place_of_a_child() -> None:
    class ByTopic(Ramp):
        def unloaded(self, record: Record) -> None:
            self.context.forward(record.with_value(-record.value), to="moved-pallets")
            self.context.forward(record, to="pallet-log")

    assert mistaken_pallets(ByTopic) == "no child of that name"


def test_a_null_value_that_is_compared() -> None:
    class Compares(Ramp):
        def process(self, record: Record) -> None:
            if record.value < 0:
                self.unloaded(record)
            else:
                self.context.forward(record)

    assert mistaken_pallets(Compares) == "null value not handled"


# ---- 3: readings so far ----------------------------------------------------------------------------------------------


class Report(Processor):
    """Reports as it should; the others below do something else in one place."""

    clock, count = STREAM, 0

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule("1 minute", self.clock, self.report)

    def process(self, record: Record) -> None:
        self.count += 1

    def report(self, time: int) -> None:
        self.context.forward(Record("all", f"{self.count} readings by {time}", time))


def mistaken_readings(processor: Any) -> str:
    def readings_so_far(builder: StreamsBuilder) -> None:
        builder.stream("truck-readings", value=DOUBLE).process(processor, value=STRING).to("readings-so-far")

    return misconception("readings_so_far", readings_so_far)


@one_more
def test_reports_by_the_wall_clock() -> None:
    class ByTheWall(Report):
        clock = WALL

    assert mistaken_readings(ByTheWall) == "wall clock for stream time"


@one_more
def test_minutes_told_by_hand_from_the_second_record_on() -> None:
    class ByHand(Report):
        minute = -1

        def init(self, context: ProcessorContext) -> None:
            self.context = context

        def process(self, record: Record) -> None:
            self.count += 1
            now = record.timestamp // 60_000
            if self.minute not in (-1, now) and now > self.minute:
                self.report(record.timestamp)
            self.minute = max(now, self.minute)

    assert mistaken_readings(ByHand) == "first report forgotten"


# ---- 4: roll call ----------------------------------------------------------------------------------------------------


class RollCall(Report):
    """Calls as it should; the others below do something else in one place."""

    clock, calls = WALL, 0

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.handle = context.schedule("1 minute", self.clock, self.report)

    def report(self, time: int) -> None:
        self.calls += 1
        said = f"call {self.calls}, {self.count} readings, stream time {self.now(time)}"
        self.context.forward(Record("all", said, time))
        if self.calls == 4:
            self.handle.cancel()

    def now(self, time: int) -> int:
        return self.context.current_stream_time_ms()


def mistaken_calls(processor: Any) -> str:
    def roll_call(builder: StreamsBuilder) -> None:
        builder.stream("truck-readings", value=DOUBLE).process(processor, value=STRING).to("roll-calls")

    return misconception("roll_call", roll_call)


@one_more
def test_calls_by_stream_time() -> None:
    class ByTheStream(RollCall):
        clock = STREAM

    assert mistaken_calls(ByTheStream) == "stream time for wall clock"


@one_more
def test_a_handle_that_is_not_used() -> None:
    class OnAndOn(RollCall):
        def report(self, time: int) -> None:
            self.calls += 1
            said = f"call {self.calls}, {self.count} readings, stream time {self.now(time)}"
            self.context.forward(Record("all", said, time))

    assert mistaken_calls(OnAndOn) == "punctuation not cancelled"


def test_the_time_of_the_call_for_stream_time() -> None:
    class OneClock(RollCall):
        def now(self, time: int) -> int:
            return time

    assert mistaken_calls(OneClock) == "wall clock told as stream time"


# ---- 5: the highest of each minute -----------------------------------------------------------------------------------


class Highest(Processor):
    """Keeps and tells as it should; the others below do something else in one place."""

    clock = STREAM

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.highest = context.state_store("highest")
        context.schedule("1 minute", self.clock, self.report)

    def process(self, record: Record) -> None:
        if record.value is not None:
            self.keep(record)

    def keep(self, record: Record) -> None:
        known = self.highest.get(record.key)
        self.highest.put(record.key, record.value if known is None else max(known, record.value))

    def report(self, time: int) -> None:
        for truck, highest in self.highest.all():
            self.context.forward(Record(truck, highest, time))
            self.highest.delete(truck)


def mistaken_highest(processor: Any) -> str:
    def highest_reading(builder: StreamsBuilder) -> None:
        store = Stores.persistent_key_value_store("highest", STRING, DOUBLE)
        stream = builder.stream("truck-readings", value=DOUBLE)
        stream.process(processor, stores=[store], value=DOUBLE).to("highest-readings")

    return misconception("highest_reading", highest_reading)


@one_more
def test_the_truck_of_the_last_record_only() -> None:
    class OneTruck(Highest):
        truck = ""

        def keep(self, record: Record) -> None:
            self.truck = record.key
            super().keep(record)

        def report(self, time: int) -> None:
            self.context.forward(Record(self.truck, self.highest.get(self.truck), time))
            self.highest.delete(self.truck)

    assert mistaken_highest(OneTruck) == "only the key in hand"


@one_more
def test_trucks_in_the_order_of_their_numbers() -> None:
    class ByNumber(Highest):
        def report(self, time: int) -> None:
            for truck, highest in sorted(self.highest.all(), key=lambda row: int(row.key.split("-")[1])):
                self.context.forward(Record(truck, highest, time))
                self.highest.delete(truck)

    assert mistaken_highest(ByNumber) == "rows in another order"


@one_more
def test_zero_for_a_truck_that_is_not_there() -> None:
    class OrZero(Highest):
        def keep(self, record: Record) -> None:
            self.highest.put(record.key, max(self.highest.get(record.key) or 0.0, record.value))

    assert mistaken_highest(OrZero) == "zero for a truck without a row"


# ---- 6: last seen ----------------------------------------------------------------------------------------------------


class LastSeen(Processor):
    """Keeps and tells as it should; the others below do something else in one place."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.seen = context.state_store("last-seen")

    def process(self, record: Record) -> None:
        known, place = self.seen.get(record.key), record.value or "nowhere"
        if self.is_older(record, known):
            self.context.forward(record.with_value(f"ignored {place}"))
            return
        self.keep(record)
        before = "new" if known is None else f"{known.value}@{known.timestamp}"
        self.context.forward(record.with_value(f"{before}->{place}"))

    def keep(self, record: Record) -> None:
        self.seen.put(record.key, ValueAndTimestamp(record.value, record.timestamp))

    def is_older(self, record: Record, known: ValueAndTimestamp | None) -> bool:
        return known is not None and record.timestamp < known.timestamp


def mistaken_places(processor: Any) -> str:
    def last_seen(builder: StreamsBuilder) -> None:
        store = Stores.persistent_timestamped_key_value_store("last-seen", STRING, STRING)
        builder.stream("truck-positions").process(processor, stores=[store]).to("truck-moves")

    return misconception("last_seen", last_seen)


@one_more
def test_places_in_the_order_of_arrival() -> None:
    class AsTheyCome(LastSeen):
        def is_older(self, record: Record, known: ValueAndTimestamp | None) -> bool:
            return False

    assert mistaken_places(AsTheyCome) == "older record believed"


@one_more
def test_stream_time_for_the_time_of_a_truck() -> None:
    class ByStreamTime(LastSeen):
        def is_older(self, record: Record, known: ValueAndTimestamp | None) -> bool:
            return record.timestamp < self.context.current_stream_time_ms()

    assert mistaken_places(ByStreamTime) == "compared with stream time"


def test_a_place_without_its_time() -> None:
    class NoTime(LastSeen):
        def keep(self, record: Record) -> None:
            self.seen.put(record.key, record.value)

    assert mistaken_places(NoTime) == "value without its time"
