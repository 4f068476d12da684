record Flight(String carrier, Double dep_delay, Double arr_delay) {}

Serde<Flight> flight = serde(Flight.class);
StreamsBuilder builder = new StreamsBuilder();

builder.stream("nyc-flights", Consumed.with(Serdes.String(), flight))
    .groupBy((airport, f) -> "all", Grouped.with(Serdes.String(), flight))
    .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofHours(1), Duration.ofHours(2)))
    .aggregate(
        () -> 0L,
        (all, f, count) -> count + 1,
        Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("by-hour").withValueSerde(Serdes.Long()));

Topology topology = builder.build();
