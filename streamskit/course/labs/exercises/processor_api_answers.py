"""Answers to lab 10: the processor of each task, and what makes others of it that differ in one method."""

from collections.abc import Callable
from typing import Any

from streamskit.api.processor import Processor, ProcessorContext, PunctuationType, Record
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes
from streamskit.state.stores import Stores, ValueAndTimestamp
from streamskit.topology import Topology

STRING, LONG, DOUBLE = Serdes.string(), Serdes.long(), Serdes.double()
STREAM, WALL = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME

Answer = Callable[[StreamsBuilder], None]


def with_other(processor: type[Processor], methods: dict[str, Any]) -> type[Processor]:
    """Return a processor that differs from another in these methods and attributes."""
    return type(processor.__name__, (processor,), methods)


# ---- 1: the stops of a trip ------------------------------------------------------------------------------------------


class Stops(Processor):
    """Counts in its store."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.stops: Any = context.state_store("stops")
        self.counts: dict[str, int] = {}

    def process(self, record: Record) -> None:
        if record.key is None:
            self.without_key(record)
        elif record.value is None:
            self.leave(record)
        else:
            self.arrive(record)

    def without_key(self, record: Record) -> None:
        """Leave a record without a key out."""

    def leave(self, record: Record) -> None:
        """End a trip."""
        before = self.delete(record.key)
        self.context.forward(record.with_value(None if before is None else -before))

    def delete(self, truck: str) -> Any:
        """Return the count of a truck, and forget it."""
        return self.stops.delete(truck)

    def arrive(self, record: Record) -> None:
        """Count a stop."""
        self.tell(record, self.counted(record.key))

    def counted(self, truck: str) -> int:
        """Return the count with this stop, and keep it."""
        count = (self.stops.get(truck) or 0) + 1
        self.stops.put(truck, count)
        return int(count)

    def tell(self, record: Record, count: int) -> None:
        """Forward a count."""
        self.context.forward(record.with_value(count))


def count_in_a_dict(stops: Stops, truck: str) -> int:
    """Count in a field of the processor."""
    stops.counts[truck] = stops.counts.get(truck, 0) + 1
    return stops.counts[truck]


def count_all_trucks(stops: Stops, truck: str) -> int:
    """Count in one field for all trucks, and keep that."""
    count = count_in_a_dict(stops, "all")
    stops.stops.put(truck, count)
    return count


def stops(connected: bool = True, **methods: Any) -> Answer:
    """Return the answer whose processor differs in these methods, and has its store or not."""

    def answer(builder: StreamsBuilder) -> None:
        stores = [Stores.persistent_key_value_store("stops", STRING, LONG)] if connected else []
        stream = builder.stream("truck-stops")
        stream.process(with_other(Stops, methods), stores=stores, value=LONG).to("stop-counts")

    return answer


# ---- 2: pallets ------------------------------------------------------------------------------------------------------


class Ramp(Processor):
    """Sorts pallets."""

    moved = "moved"

    def process(self, record: Record) -> None:
        if record.value is None:
            self.context.forward(record, to="log")
        else:
            self.sort(record)

    def sort(self, record: Record) -> None:
        """Sort a record with a value."""
        self.unload(record) if record.value < 0 else self.load(record)

    def unload(self, record: Record) -> None:
        """Forward what was unloaded."""
        self.context.forward(self.amount(record), to=self.moved)
        self.context.forward(record, to="log")

    def amount(self, record: Record) -> Record:
        """Return what was unloaded, without a minus."""
        return record.with_value(-record.value)

    def load(self, record: Record) -> None:
        """Forward what was loaded."""
        self.context.forward(record)


def pallets(**methods: Any) -> Callable[[], Topology]:
    """Return the answer whose processor differs in these methods."""

    def answer() -> Topology:
        topology = Topology().add_source("ramp", "pallets", value=LONG)
        topology.add_processor("sort", with_other(Ramp, methods), "ramp")
        for sink, topic in (("loaded", "loaded-pallets"), ("moved", "moved-pallets"), ("log", "pallet-log")):
            topology.add_sink(sink, topic, "sort", value=LONG)
        return topology

    return answer


# ---- 3 and 4: readings so far, and a roll call -----------------------------------------------------------------------


class Report(Processor):
    """Reports by stream time."""

    clock, every, count, calls, latest, minute = STREAM, "1 minute", 0, 0, -1, -1

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.schedule()

    def schedule(self) -> None:
        """Ask to be called."""
        self.handle = self.context.schedule(self.every, self.clock, self.report)

    def process(self, record: Record) -> None:
        self.count += 1
        self.latest = record.timestamp

    def report(self, time: int) -> None:
        """Tell how many readings there were."""
        self.calls += 1
        self.context.forward(Record("all", self.said(time), self.told(time)))

    def said(self, time: int) -> str:
        """Return what a report says."""
        return f"{self.count} readings by {time}"

    def told(self, time: int) -> int:
        """Return the timestamp of a report."""
        return time


class RollCall(Report):
    """Calls four times by the wall clock."""

    clock, last = WALL, 4

    def report(self, time: int) -> None:
        super().report(time)
        if self.calls == self.last:
            self.handle.cancel()

    def said(self, time: int) -> str:
        return f"call {self.calls}, {self.count} readings, stream time {self.now(time)}"

    def now(self, time: int) -> int:
        """Return stream time."""
        return self.context.current_stream_time_ms()


def by_hand(made_up: bool = False, first: bool = True, too_soon: bool = False) -> dict[str, Any]:
    """Return the methods of a report that finds the minutes itself.

    Args:
        made_up: whether it reports for each minute of a gap.
        first: whether the first record makes a report.
        too_soon: whether it reports before it counts.
    """

    def process(report: Report, record: Record) -> None:
        now, was = record.timestamp // 60_000, report.minute
        report.count += not too_soon
        if was == -1 or now > was:
            report.minute = now
            for minute in range(was + 1, now + 1) if made_up and was >= 0 else (now,):
                if was >= 0 or first:
                    report.report(record.timestamp if minute == now else minute * 60_000)
        report.count += too_soon

    return {"schedule": lambda report: None, "process": process}


def readings(**methods: Any) -> Answer:
    """Return the answer to the third exercise whose processor differs in these methods."""
    return _reported(Report, "readings-so-far", methods)


def calls(**methods: Any) -> Answer:
    """Return the answer to the fourth exercise whose processor differs in these methods."""
    return _reported(RollCall, "roll-calls", methods)


def _reported(processor: type[Processor], target: str, methods: dict[str, Any]) -> Answer:
    def answer(builder: StreamsBuilder) -> None:
        stream = builder.stream("truck-readings", value=DOUBLE)
        stream.process(with_other(processor, methods), value=STRING).to(target)

    return answer


def counted_and_reported(report: Report, record: Record) -> None:
    """Report with every record."""
    report.count += 1
    report.report(record.timestamp)


def counted_and_scheduled(report: Report, record: Record) -> None:
    """Schedule with every record."""
    report.count += 1
    report.schedule()


def scheduled_at_first(report: Report, record: Record) -> None:
    """Schedule with the first record."""
    if report.count == 0:
        Report.schedule(report)
    Report.process(report, record)


def reported_and_forgotten(report: Report, time: int) -> None:
    """Report, and count anew."""
    Report.report(report, time)
    report.count = 0


def change(processor: Processor, record: Any, *rest: Any) -> None:
    """Change a record in place."""
    record.value = 0


# ---- 5: the highest of each minute -----------------------------------------------------------------------------------


class Highest(Processor):
    """Keeps and tells the highest readings."""

    clock, truck = STREAM, ""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.highest: Any = context.state_store("highest")
        self.kept: dict[str, float] = {}
        context.schedule("1 minute", self.clock, self.report)

    def process(self, record: Record) -> None:
        if record.value is not None:
            self.truck = record.key
            self.keep(record)

    def keep(self, record: Record) -> None:
        """Keep a reading, if it is the highest."""
        known = self.highest.get(record.key)
        self.highest.put(record.key, record.value if known is None else max(known, record.value))

    def report(self, time: int) -> None:
        """Tell all rows, and delete them."""
        for truck, highest in self.rows():
            self.tell(truck, highest, time)
            self.delete(truck)

    def rows(self) -> list[tuple[str, float]]:
        """Return the rows to tell."""
        return list(self.highest.all())

    def tell(self, truck: str, highest: float, time: int) -> None:
        """Forward a row."""
        self.context.forward(Record(truck, highest, time))

    def delete(self, truck: str) -> None:
        """Forget a truck."""
        self.highest.delete(truck)


def keep_in_a_dict(highest: Highest, record: Record) -> None:
    """Keep the highest in a field of the processor."""
    highest.kept[record.key] = max(record.value, highest.kept.get(record.key, record.value))


def keep_and_tell(highest: Highest, record: Record) -> None:
    """Tell with every record."""
    Highest.process(highest, record)
    highest.report(record.timestamp)


def highest(connected: bool = True, **methods: Any) -> Answer:
    """Return the answer whose processor differs in these methods, and has its store or not."""

    def answer(builder: StreamsBuilder) -> None:
        stores = [Stores.persistent_key_value_store("highest", STRING, DOUBLE)] if connected else []
        stream = builder.stream("truck-readings", value=DOUBLE)
        stream.process(with_other(Highest, methods), stores=stores, value=DOUBLE).to("highest-readings")

    return answer


# ---- 6: last seen ----------------------------------------------------------------------------------------------------


class LastSeen(Processor):
    """Keeps and tells where trucks are."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.seen: Any = context.state_store("last-seen")
        self.places: dict[str, ValueAndTimestamp] = {}

    def process(self, record: Record) -> None:
        known, place = self.known(record.key), self.place(record)
        if self.is_older(record, known):
            self.tell(record, f"ignored {place}")
            return
        self.keep(record)
        self.tell(record, f"{'new' if known is None else f'{known.value}@{known.timestamp}'}->{place}")

    def known(self, truck: str) -> ValueAndTimestamp | None:
        """Return what is known of a truck."""
        return self.seen.get(truck)

    def place(self, record: Record) -> str:
        """Return what is told of a place."""
        return record.value or "nowhere"

    def keep(self, record: Record) -> None:
        """Keep a place with its time."""
        self.seen.put(record.key, ValueAndTimestamp(record.value, self.time(record)))

    def time(self, record: Record) -> int:
        """Return the time of a place."""
        return record.timestamp

    def is_older(self, record: Record, known: ValueAndTimestamp | None) -> bool:
        """Whether a record is older than what is known."""
        return known is not None and record.timestamp < known.timestamp

    def tell(self, record: Record, text: str) -> None:
        """Forward a text."""
        self.context.forward(record.with_value(text))


def place_in_a_dict(seen: LastSeen, record: Record) -> None:
    """Keep a place in a field of the processor."""
    seen.places[record.key] = ValueAndTimestamp(record.value, record.timestamp)
    if record.value is None:
        del seen.places[record.key]


def places(connected: bool = True, **methods: Any) -> Answer:
    """Return the answer whose processor differs in these methods, and has its store or not."""

    def answer(builder: StreamsBuilder) -> None:
        store = Stores.persistent_timestamped_key_value_store("last-seen", STRING, STRING)
        stream = builder.stream("truck-positions").process(
            with_other(LastSeen, methods), stores=[store] if connected else []
        )
        stream.to("truck-moves")

    return answer
