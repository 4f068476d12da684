record Order(String customer, String country, int total) {}

Serde<String> text = Serdes.String();
Serde<Order> order = serde(Order.class);
StreamsBuilder builder = new StreamsBuilder();

KTable<String, String> countries =
    builder.table("global-countries", Consumed.with(text, text), Materialized.as("countries"));
builder.stream("global-orders", Consumed.with(text, order))
    .selectKey((id, o) -> o.country())
    .join(countries, (o, country) -> country, Joined.with(text, order, text))
    .to("global-by-country", Produced.with(text, text));

Topology topology = builder.build();
