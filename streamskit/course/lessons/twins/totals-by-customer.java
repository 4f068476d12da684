record Order(String customer, long amount) {}

Serde<Order> order = serde(Order.class);
StreamsBuilder builder = new StreamsBuilder();

builder.stream("task-orders", Consumed.with(Serdes.String(), order))
    .groupBy((id, o) -> o.customer(), Grouped.with("by-customer", Serdes.String(), order))
    .aggregate(
        () -> 0L,
        (customer, o, total) -> total + o.amount(),
        Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("totals").withValueSerde(Serdes.Long()))
    .toStream()
    .to("task-totals", Produced.with(Serdes.String(), Serdes.Long()));

Topology topology = builder.build();
