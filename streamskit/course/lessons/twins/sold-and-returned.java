record Order(String order, String user, double price) {}

Consumed<String, Order> asOrder = Consumed.with(Serdes.String(), serde(Order.class));
StreamsBuilder builder = new StreamsBuilder();

KGroupedStream<String, Order> sold = builder.stream("shop-orders", asOrder).groupByKey();
KGroupedStream<String, Order> returned = builder.stream("returns", asOrder).groupByKey();
sold.<Double>cogroup((product, order, total) -> total + order.price())
    .cogroup(returned, (product, order, total) -> total - order.price())
    .aggregate(
        () -> 0.0,
        Materialized.<String, Double, KeyValueStore<Bytes, byte[]>>as("balance")
            .withKeySerde(Serdes.String())
            .withValueSerde(Serdes.Double()))
    .toStream()
    .to("shop-totals", Produced.with(Serdes.String(), Serdes.Double()));

Topology topology = builder.build();
