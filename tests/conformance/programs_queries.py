"""The programs of the vectors `queries-*`."""

from streamskit import Materialized, Serdes, StreamsBuilder, TimeWindows
from tests.conformance.registry import program


@program
def queries_key_value(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count("counts").to_stream().to("out")


@program
def queries_window(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_with_no_grace(100)
    counts = builder.stream("in").group_by_key().windowed_by(windows).count(Materialized("counts", retention=500))
    counts.to_stream().to("out", key=Serdes.time_windowed(Serdes.string(), 100))


@program
def queries_versioned(builder: StreamsBuilder) -> None:
    builder.table("in", materialized=Materialized.versioned("versions", 1000))


@program
def queries_versions(builder: StreamsBuilder) -> None:
    queries_versioned(builder)
