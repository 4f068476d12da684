record Order(String order, double price) {}
record User(String name, String city) {}
record Bundle(String left, String right, double price, String name) {
    Bundle(Order left, Order right) {
        this(left.order(), right.order(), left.price() + right.price(), null);
    }

    Bundle of(User user) {
        return new Bundle(left, right, price, user == null ? null : user.name());
    }
}

Serde<Order> order = serde(Order.class);
Serde<User> user = serde(User.class);
Serde<Bundle> bundle = serde(Bundle.class);
JoinWindows halfHour = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMinutes(30));
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Order> appliances = builder.stream("appliance-orders", Consumed.with(Serdes.String(), order));
KStream<String, Order> electronics = builder.stream("electronic-orders", Consumed.with(Serdes.String(), order));
KStream<String, Bundle> bundles = appliances.join(
    electronics, (left, right) -> new Bundle(left, right), halfHour, StreamJoined.with(Serdes.String(), order, order));
KTable<String, User> users = builder.stream("users-in-three", Consumed.with(Serdes.String(), user))
    .repartition(Repartitioned.with(Serdes.String(), user).withName("users-in-two").withNumberOfPartitions(2))
    .toTable();
bundles.leftJoin(users, Bundle::of, Joined.with(Serdes.String(), bundle, user))
    .to("bundles", Produced.with(Serdes.String(), bundle));

Topology topology = builder.build();
