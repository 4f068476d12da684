record Order(String customer, long amount) {}

Consumed<String, Order> asOrder = Consumed.with(Serdes.String(), serde(Order.class));
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Long> orders = builder.stream("task-orders", asOrder).mapValues(Order::amount);
KStream<String, Long> returns = builder.stream("task-returns", asOrder).mapValues(o -> -o.amount());
orders.merge(returns).to("task-totals", Produced.with(Serdes.String(), Serdes.Long()));

Topology topology = builder.build();
