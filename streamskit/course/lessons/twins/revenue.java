record Order(String order, double price, long time) {}

Duration size = Duration.ofMinutes(10);
TimestampExtractor orderTime = (record, partitionTime) -> ((Order) record.value()).time();
StreamsBuilder builder = new StreamsBuilder();

builder
    .stream("uploads", Consumed.with(Serdes.String(), serde(Order.class)).withTimestampExtractor(orderTime))
    .groupByKey()
    .windowedBy(TimeWindows.ofSizeAndGrace(size, Duration.ofMinutes(5)))
    .aggregate(
        () -> 0.0,
        (product, order, total) -> total + order.price(),
        Named.as("revenue"),
        Materialized.<String, Double, WindowStore<Bytes, byte[]>>as("revenue-store").withValueSerde(Serdes.Double()))
    .toStream()
    .to("revenue", Produced.with(
        WindowedSerdes.timeWindowedSerdeFrom(String.class, size.toMillis()), Serdes.Double()));

Topology topology = builder.build();
