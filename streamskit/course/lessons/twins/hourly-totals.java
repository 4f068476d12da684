record Order(String order, double price) {}

Duration hour = Duration.ofHours(1);
TimeWindows patient = TimeWindows.ofSizeAndGrace(hour, Duration.ofMinutes(5));
Consumed<String, Order> asOrder = Consumed.with(Serdes.String(), serde(Order.class));
StreamsBuilder builder = new StreamsBuilder();

builder.stream("hourly-orders", asOrder).groupByKey().windowedBy(patient)
    .aggregate(
        () -> 0.0,
        (product, order, total) -> total + order.price(),
        Materialized.<String, Double, WindowStore<Bytes, byte[]>>as("totals").withValueSerde(Serdes.Double()))
    .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
    .toStream()
    .to("hourly-totals", Produced.with(
        WindowedSerdes.timeWindowedSerdeFrom(String.class, hour.toMillis()), Serdes.Double()));
builder.stream("hourly-orders", asOrder).groupByKey().windowedBy(patient)
    .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("order-counts").withRetention(Duration.ofDays(1)));

Topology topology = builder.build();
