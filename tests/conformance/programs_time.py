"""The programs of the vectors `time-*`."""

from streamskit import Materialized, Processor, Record, Serdes, StreamsBuilder, TimestampExtractor, TimeWindows
from tests.conformance.registry import program


@program
def time_fail_on_invalid(builder: StreamsBuilder) -> None:
    builder.stream("in", timestamps=TimestampExtractor.fail_on_invalid()).to("out")


@program
def time_log_and_skip(builder: StreamsBuilder) -> None:
    builder.stream("in", timestamps=TimestampExtractor.log_and_skip_on_invalid()).to("out")


@program
def time_use_partition_time_unknown(builder: StreamsBuilder) -> None:
    builder.stream("in", timestamps=TimestampExtractor.use_partition_time_on_invalid()).to("out")


@program
def time_payload_extractor(builder: StreamsBuilder) -> None:
    extractor = TimestampExtractor.of(lambda v: v.ts, invalid="skip", missing="partition time")
    builder.stream("in", value=Serdes.json("n long, ts long"), timestamps=extractor).to("out")


class TimeReporter(Processor):
    def process(self, record: Record) -> None:
        now = self.context.current_stream_time_ms()
        value = "null" if record.value is None else record.value
        self.context.forward(record.with_value(f"{value} at {record.timestamp}, stream time {now}"))


@program
def time_stream_time(builder: StreamsBuilder) -> None:
    builder.stream("in").process(TimeReporter).to("out")


@program
def time_filter_before_window(builder: StreamsBuilder) -> None:
    (
        builder.stream("in")
        .filter(lambda v: v != "tick")
        .group_by_key()
        .windowed_by(TimeWindows.of_size_with_no_grace("100 ms"))
        .count("counts")
        .to_stream()
        .to("out")
    )


@program
def time_out_of_order_count(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in").group_by_key()
    grouped.count("all").to_stream().to("counts")
    (
        grouped.windowed_by(TimeWindows.of_size_and_grace("100 ms", "100 ms"))
        .count(Materialized("windowed", retention="1 second"))
        .to_stream()
        .to("window-counts")
    )


class EventTime(Processor):
    def process(self, record: Record) -> None:
        time = record.value.get("ts")
        self.context.forward(record if time is None else record.with_timestamp(time))


@program
def time_processor_timestamp_window(builder: StreamsBuilder) -> None:
    event = Serdes.json("ts long, n long")
    (
        builder.stream("in", value=event)
        .process(EventTime)
        .group_by_key(name="by-key")
        .windowed_by(TimeWindows.of_size_with_no_grace("100 ms"))
        .count("counts")
        .to_stream()
        .to("out")
    )
