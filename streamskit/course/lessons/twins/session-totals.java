record Order(String order, double price) {}

SessionWindows gap = SessionWindows.ofInactivityGapAndGrace(Duration.ofMinutes(40), Duration.ofHours(1));
StreamsBuilder builder = new StreamsBuilder();

builder.stream("hourly-orders", Consumed.with(Serdes.String(), serde(Order.class)))
    .groupByKey()
    .windowedBy(gap)
    .aggregate(
        () -> 0.0,
        (product, order, total) -> total + order.price(),
        (product, one, other) -> one + other,
        Materialized.<String, Double, SessionStore<Bytes, byte[]>>as("totals").withValueSerde(Serdes.Double()))
    .toStream()
    .to("hourly-totals", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), Serdes.Double()));

Topology topology = builder.build();
