"""The programs of the vectors `processor-*`."""

from typing import Any

from pyspark.sql import functions as F

from streamskit import (
    Cancellable,
    FixedKeyProcessor,
    FixedKeyRecord,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    TimeWindows,
    Topology,
    ValueAndTimestamp,
    VersionedRecord,
)
from tests.conformance.registry import program, wired

STRING, LONG = Serdes.string(), Serdes.long()


class RunningTotal(FixedKeyProcessor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.totals = context.state_store("totals")

    def process(self, record: FixedKeyRecord) -> None:
        if record.value is None:
            return
        total = (self.totals.get(record.key) or 0) + record.value
        self.totals.put(record.key, total)
        self.context.forward(record.with_value(f"+{record.value}"))
        if total % 10 == 0:
            self.context.forward(record.with_value(f"={total}").with_timestamp(record.timestamp + 1))


@program
def processor_fixed_key(builder: StreamsBuilder) -> None:
    totals = Stores.persistent_key_value_store("totals", STRING, LONG)
    builder.stream("in", value=LONG).process_values(RunningTotal, stores=[totals], value=STRING).to("out")


class Router(Processor):
    def process(self, record: Record) -> None:
        if record.value is None:
            self.context.forward(record, to="audit")
        elif record.value < 0:
            self.context.forward(record.with_value(-record.value), to="negative")
            self.context.forward(record, to="audit")
        else:
            self.context.forward(record)


@wired
def processor_forward_to_child() -> Topology:
    topology = Topology().add_source("source", "in", value=LONG).add_processor("router", Router, "source")
    for sink in ("positive", "negative", "audit"):
        topology.add_sink(sink, sink, "router", value=LONG)
    return topology


class Counting(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.counts = context.state_store("counts")

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        if record.value is None:
            old = self.counts.delete(record.key)
            self.context.forward(record.with_value(None if old is None else -old))
            return
        before = self.counts.put_if_absent(record.key, 1)
        now = 1 if before is None else before + 1
        self.counts.put(record.key, now)
        self.context.forward(record.with_value(now))


@wired
def processor_key_value_store() -> Topology:
    return (
        Topology()
        .add_source("source", "in")
        .add_processor("count", Counting, "source")
        .add_state_store(Stores.persistent_key_value_store("counts", STRING, LONG), "count")
        .add_sink("sink", "out", "count", value=LONG)
    )


class Recent(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.recent = context.state_store("recent")

    def process(self, record: Record) -> None:
        old = self.recent.get(record.key)
        self.recent.put(record.key, record.value)
        self.context.forward(record.with_value(f"{'null' if old is None else old}->{record.value}"))


@program
def processor_lru_store(builder: StreamsBuilder) -> None:
    builder.add_state_store(Stores.lru_map("recent", 2, STRING, STRING))
    builder.stream("in").process(Recent, stores=["recent"]).to("out")


INVOICE = "InvoiceNumber string, CustomerCardNo string, CustomerType string, TotalAmount double"


class Rewards(FixedKeyProcessor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.points = context.state_store("customer-rewards")

    def process(self, record: FixedKeyRecord) -> None:
        invoice = record.value
        earned = invoice["TotalAmount"] * 0.02
        total = (self.points.get(record.key) or 0.0) + earned
        self.points.put(record.key, total)
        kept = {name: invoice[name] for name in ("InvoiceNumber", "CustomerCardNo", "TotalAmount")}
        points = {"EarnedLoyaltyPoints": earned, "TotalLoyaltyPoints": total}
        self.context.forward(record.with_value(kept | points))


@program
def processor_pos_rewards(builder: StreamsBuilder) -> None:
    builder.add_state_store(Stores.persistent_key_value_store("customer-rewards", STRING, Serdes.double()))
    notification = Serdes.json(
        "InvoiceNumber string, CustomerCardNo string, TotalAmount double, EarnedLoyaltyPoints double, "
        "TotalLoyaltyPoints double"
    )
    (
        builder.stream("pos", value=Serdes.json(INVOICE))
        .filter(lambda v: F.upper(v.CustomerType) == "PRIME")
        .select_key(lambda v: v.CustomerCardNo)
        .repartition(name="rewards")
        .process_values(Rewards, stores=["customer-rewards"], value=notification)
        .to("notifications")
    )


class StreamTimeTicker(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.count = 0
        context.schedule("100 ms", PunctuationType.STREAM_TIME, self.tick)

    def tick(self, timestamp: int) -> None:
        self.context.forward(Record("tick", f"{self.count} records by {timestamp}", timestamp))

    def process(self, record: Record) -> None:
        self.count += 1


@program
def processor_punctuate_stream_time(builder: StreamsBuilder) -> None:
    builder.stream("in").process(StreamTimeTicker).to("out")


class WallClockTicker(Processor):
    schedule: Cancellable

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.records = self.calls = 0
        self.schedule = context.schedule("100 ms", PunctuationType.WALL_CLOCK_TIME, self.tick)

    def tick(self, timestamp: int) -> None:
        self.calls += 1
        time = self.context.current_stream_time_ms()
        said = f"call {self.calls}, {self.records} records, stream time {time}"
        self.context.forward(Record("tick", said, timestamp))
        if self.calls == 4:
            self.schedule.cancel()

    def process(self, record: Record) -> None:
        self.records += 1


@program
def processor_punctuate_wall_clock(builder: StreamsBuilder) -> None:
    builder.stream("in").process(WallClockTicker).to("out")


class MetadataReporter(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule("1 second", PunctuationType.WALL_CLOCK_TIME, self.punctuate)

    def punctuate(self, timestamp: int) -> None:
        self.context.forward(Record("punctuation", self.report(()), timestamp))

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(self.report(record.headers) | {"timestamp": record.timestamp}))

    def report(self, headers: Any) -> dict[str, Any]:
        context = self.context
        return {
            "application_id": context.application_id,
            "stream_time": context.current_stream_time_ms(),
            "system_time": context.current_system_time_ms(),
            "metadata": context.record_metadata()._asdict(),
        } | {f"header_{name}": value.decode() for name, value in headers}


@program
def processor_record_metadata(builder: StreamsBuilder) -> None:
    # Any JSON will do: what is forwarded goes to the topic as the processor made it.
    merged = builder.stream("in1").merge(builder.stream("in2"))
    merged.process(MetadataReporter, value=Serdes.json("map<string, string>")).to("out")


class Latest(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.latest = context.state_store("latest")

    def process(self, record: Record) -> None:
        old = self.latest.get(record.key)
        if old is None or record.timestamp >= old.timestamp:
            self.latest.put(record.key, ValueAndTimestamp(record.value, record.timestamp))
            before = "new" if old is None else f"{old.value}@{old.timestamp}"
            now = "null" if record.value is None else record.value
            self.context.forward(record.with_value(f"{before}->{now}"))
        else:
            self.context.forward(record.with_value(f"ignored {record.value}"))


@program
def processor_timestamped_store(builder: StreamsBuilder) -> None:
    builder.add_state_store(Stores.persistent_timestamped_key_value_store("latest", STRING, STRING))
    builder.stream("in").process(Latest, stores=["latest"]).to("out")


class TwoTickers(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule("200 ms", PunctuationType.STREAM_TIME, self.slow)
        self.fast_schedule = context.schedule("100 ms", PunctuationType.STREAM_TIME, self.fast)

    def slow(self, now: int) -> None:
        self.context.forward(Record("slow", f"at {now}", now))

    def fast(self, now: int) -> None:
        self.context.forward(Record("fast", f"at {now}", now))

    def more(self, now: int) -> None:
        self.context.forward(Record("more", f"at {now}", now))

    def process(self, record: Record) -> None:
        if record.value == "stop":
            self.fast_schedule.cancel()
        elif record.value == "more":
            self.context.schedule("50 ms", PunctuationType.STREAM_TIME, self.more)
        self.context.forward(record)


@program
def processor_punctuate_two(builder: StreamsBuilder) -> None:
    builder.stream("in").process(TwoTickers).to("out")


class UpperCaseFiller(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.names = context.state_store("names")

    def process(self, record: Record) -> None:
        self.names.put(record.key, None if record.value is None else record.value.upper())


class Greeter(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.names = context.state_store("names")
        self.cities = context.state_store("cities")

    def process(self, record: Record) -> None:
        city, name = self.cities.get(record.key), self.names.get(record.key)
        of_city = "" if city is None else f" of {city.value}@{city.timestamp}"
        self.context.forward(record.with_value(f"{record.value} {shown(name)}{of_city}"))


@program
def processor_global_store(builder: StreamsBuilder) -> None:
    names = Stores.persistent_key_value_store("names", STRING, STRING)
    builder.add_global_store(names, "names-in", UpperCaseFiller)
    builder.global_table("cities-in", materialized="cities")
    builder.stream("in").process(Greeter).to("out")


def shown(value: Any) -> str:
    return "null" if value is None else str(value)


class CountReader(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.counts = context.state_store("counts")
        self.windows = context.state_store("per-window")

    def process(self, record: Record) -> None:
        count = self.counts.get(record.key)
        rows = [f"{start}={row.value}@{row.timestamp}" for start, row in self.windows.fetch(record.key, 0, 1000)]
        answer = "none" if count is None else f"{count.value}@{count.timestamp}"
        self.context.forward(record.with_value(f"{answer} [{', '.join(rows)}]"))


@program
def processor_reads_aggregate(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in").group_by_key()
    grouped.count("counts")
    grouped.windowed_by(TimeWindows.of_size_and_grace("100 ms", "1 second")).count("per-window")
    builder.stream("ask").process(CountReader, stores=["counts", "per-window"]).to("out")


class Corrector(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.rows = context.state_store("rows")

    def process(self, record: Record) -> None:
        old = self.rows.get(record.key)
        if record.value == "look":
            found = "nothing" if old is None else f"{old.value}@{old.timestamp}"
            self.context.forward(record.with_value(found))
        else:
            self.rows.put(record.key, ValueAndTimestamp(record.value, record.timestamp))


@program
def processor_table_store(builder: StreamsBuilder) -> None:
    table = builder.table("table", materialized="rows")
    table.to_stream().to("updates")
    builder.stream("corrections").process(Corrector, stores=["rows"]).to("looks")
    joined = builder.stream("stream").left_join(
        table, lambda left, right: F.concat(left, F.lit("+"), F.coalesce(right, F.lit("null")))
    )
    joined.to("joined")


class Versions(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.versions = context.state_store("versions")

    def process(self, record: Record) -> None:
        key, value, time = record.key, record.value, record.timestamp
        if value is not None and value.startswith("as of "):
            said = self.said(self.versions.get(key, int(value[6:])))
        elif value == "delete":
            said = f"deleted {self.said(self.versions.delete(key, time))}"
        else:
            valid_to = self.versions.put(key, value, time)
            said = f"put until {valid_to}, latest {self.said(self.versions.get(key))}"
        self.context.forward(record.with_value(said))

    def said(self, version: VersionedRecord | None) -> str:
        return "nothing" if version is None else f"{version.value}@{version.timestamp}"


@program
def processor_versioned_store(builder: StreamsBuilder) -> None:
    builder.add_state_store(Stores.persistent_versioned_key_value_store("versions", "100 ms", STRING, STRING))
    builder.stream("in").process(Versions, stores=["versions"]).to("out")
