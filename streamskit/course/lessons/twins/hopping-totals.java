record Order(String order, double price) {}

Duration hour = Duration.ofHours(1);
TimeWindows halfHourly = TimeWindows.ofSizeAndGrace(hour, hour).advanceBy(Duration.ofMinutes(30));
StreamsBuilder builder = new StreamsBuilder();

builder.stream("hourly-orders", Consumed.with(Serdes.String(), serde(Order.class)))
    .groupByKey()
    .windowedBy(halfHourly)
    .aggregate(
        () -> 0.0,
        (product, order, total) -> total + order.price(),
        Materialized.<String, Double, WindowStore<Bytes, byte[]>>as("totals").withValueSerde(Serdes.Double()))
    .toStream()
    .to("hourly-totals", Produced.with(
        WindowedSerdes.timeWindowedSerdeFrom(String.class, hour.toMillis()), Serdes.Double()));

Topology topology = builder.build();
