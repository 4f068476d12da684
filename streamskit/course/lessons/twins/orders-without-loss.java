record Order(String customer, String country, int total) {}
record Located(String customer, int total, String country) {}

StreamsBuilder builder = new StreamsBuilder();

GlobalKTable<String, String> countries = builder.globalTable(
    "global-countries", Consumed.with(Serdes.String(), Serdes.String()), Materialized.as("countries"));
builder.stream("global-orders", Consumed.with(Serdes.String(), serde(Order.class)))
    .leftJoin(countries,
        (id, order) -> order.country(),
        (order, country) -> new Located(order.customer(), order.total(), country))
    .to("global-out", Produced.with(Serdes.String(), serde(Located.class)));

Topology topology = builder.build();
