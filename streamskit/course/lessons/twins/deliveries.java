record Order(String user, double price) {}
record User(String name, String city) {}
record Delivery(double price, String city) {}

Serde<String> text = Serdes.String();
StreamsBuilder builder = new StreamsBuilder();

KTable<String, Order> orders = builder.table("orders", Consumed.with(text, serde(Order.class)));
KTable<String, User> members = builder.table("users", Consumed.with(text, serde(User.class)));
orders
    .join(members, Order::user, (order, user) -> new Delivery(order.price(), user.city()))
    .toStream()
    .to("deliveries", Produced.with(text, serde(Delivery.class)));

Topology topology = builder.build();
