record Order(String order, String user, double price) {}

Serde<Order> order = serde(Order.class);
StreamsBuilder builder = new StreamsBuilder();

builder.stream("shop-orders", Consumed.with(Serdes.String(), order))
    .groupByKey()
    .reduce((best, next) -> next.price() > best.price() ? next : best)
    .toStream()
    .to("shop-totals", Produced.with(Serdes.String(), order));

Topology topology = builder.build();
