record Order(String order, String user, double price) {}

StreamsBuilder builder = new StreamsBuilder();

KGroupedStream<String, Order> grouped =
    builder.stream("many-orders", Consumed.with(Serdes.String(), serde(Order.class))).groupByKey();
Materialized<String, Double, KeyValueStore<Bytes, byte[]>> folded = Materialized.as("folded");
Materialized<String, Double, KeyValueStore<Bytes, byte[]>> every = Materialized.as("every");
for (var table : List.of(folded, every.withCachingDisabled())) {
    grouped.aggregate(
        () -> 0.0, (product, order, total) -> total + order.price(), table.withValueSerde(Serdes.Double()));
}

Topology topology = builder.build();
