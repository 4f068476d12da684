StreamsBuilder builder = new StreamsBuilder();

builder.stream("basic-orders", Consumed.with(Serdes.String(), Serdes.String()))
    .filter((customer, order) -> order != null && order.startsWith("orderNumber-"))
    .mapValues(order -> Integer.parseInt(order.substring("orderNumber-".length())))
    .filter((customer, number) -> number > 1000)
    .to("basic-big-orders", Produced.with(Serdes.String(), Serdes.Integer()));

Topology topology = builder.build();
