record Order(String order, double price) {}
record User(String name, String city) {}
record Located(String order, String city) {
    static Located of(Order order, User user) {
        return new Located(order.order(), user == null ? null : user.city());
    }
}

Serde<String> text = Serdes.String();
Serde<Order> order = serde(Order.class);
Serde<User> user = serde(User.class);
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Order> orders = builder.stream("electronic-orders", Consumed.with(text, order));
KTable<String, User> users = builder.table("users", Consumed.with(text, user));
orders.leftJoin(users, Located::of, Joined.with(text, order, user))
    .to("with-city", Produced.with(text, serde(Located.class)));

Topology topology = builder.build();
