record Order(String order, String user, double price) {}

Serde<Order> order = serde(Order.class);
StreamsBuilder builder = new StreamsBuilder();

builder.stream("shop-orders", Consumed.with(Serdes.String(), order))
    .groupBy((product, o) -> o.user(), Grouped.with("by-user", Serdes.String(), order))
    .count(Materialized.as("orders-by-user"))
    .toStream()
    .to("shop-totals", Produced.with(Serdes.String(), Serdes.Long()));

Topology topology = builder.build();
