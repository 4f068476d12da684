record Order(String order, double price) {}

Duration hour = Duration.ofHours(1);
StreamsBuilder builder = new StreamsBuilder();

builder.stream("hourly-orders", Consumed.with(Serdes.String(), serde(Order.class)))
    .groupByKey()
    .windowedBy(TimeWindows.ofSizeAndGrace(hour, Duration.ofMinutes(5)))
    .emitStrategy(EmitStrategy.onWindowClose())
    .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("counts").withRetention(Duration.ofDays(1)))
    .toStream()
    .to("hourly-totals", Produced.with(
        WindowedSerdes.timeWindowedSerdeFrom(String.class, hour.toMillis()), Serdes.Long()));

Topology topology = builder.build();
