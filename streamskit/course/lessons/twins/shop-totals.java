record Order(String order, String user, double price) {}

StreamsBuilder builder = new StreamsBuilder();

KGroupedStream<String, Order> grouped =
    builder.stream("shop-orders", Consumed.with(Serdes.String(), serde(Order.class))).groupByKey();
grouped.count(Materialized.as("counts"));
grouped
    .aggregate(
        () -> 0.0,
        (product, order, total) -> total + order.price(),
        Materialized.<String, Double, KeyValueStore<Bytes, byte[]>>as("totals").withValueSerde(Serdes.Double()))
    .toStream()
    .to("shop-totals", Produced.with(Serdes.String(), Serdes.Double()));

Topology topology = builder.build();
