record Order(String order, double price) {}

Duration apart = Duration.ofMinutes(45);
StreamsBuilder builder = new StreamsBuilder();

builder.stream("hourly-orders", Consumed.with(Serdes.String(), serde(Order.class)))
    .groupByKey()
    .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(apart, Duration.ofHours(1)))
    .aggregate(
        () -> 0.0,
        (product, order, total) -> total + order.price(),
        Materialized.<String, Double, WindowStore<Bytes, byte[]>>as("totals").withValueSerde(Serdes.Double()))
    .toStream()
    .to("hourly-totals", Produced.with(
        WindowedSerdes.timeWindowedSerdeFrom(String.class, apart.toMillis()), Serdes.Double()));

Topology topology = builder.build();
