record Order(String customer, String country, int total) {
    Order toCountry(String name) {
        return new Order(customer, name, total);
    }

    Order ofCustomer(String name) {
        return new Order(name, country, total);
    }
}

Serde<String> text = Serdes.String();
Serde<Order> order = serde(Order.class);
StreamsBuilder builder = new StreamsBuilder();

GlobalKTable<String, String> customers =
    builder.globalTable("global-customers", Consumed.with(text, text), Materialized.as("customers"));
GlobalKTable<String, String> countries =
    builder.globalTable("global-countries", Consumed.with(text, text), Materialized.as("countries"));
builder.stream("global-orders", Consumed.with(text, order))
    .join(countries, (id, o) -> o.country(), Order::toCountry)
    .join(customers, (id, o) -> o.customer(), Order::ofCustomer)
    .to("global-star", Produced.with(text, order));

Topology topology = builder.build();
