record Order(String order, double price) {}
record Bundle(String left, String right, double price) {
    static Bundle of(Order left, Order right) {
        return new Bundle(
            left == null ? null : left.order(),
            right == null ? null : right.order(),
            (left == null ? 0 : left.price()) + (right == null ? 0 : right.price()));
    }
}

Serde<String> text = Serdes.String();
Serde<Order> order = serde(Order.class);
Produced<String, Bundle> asBundle = Produced.with(text, serde(Bundle.class));
JoinWindows halfHour = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMinutes(30));
StreamJoined<String, Order, Order> joined = StreamJoined.with(text, order, order);
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Order> appliances = builder.stream("appliance-orders", Consumed.with(text, order));
KStream<String, Order> electronics = builder.stream("electronic-orders", Consumed.with(text, order));
appliances.join(electronics, Bundle::of, halfHour, joined).to("inner", asBundle);
appliances.leftJoin(electronics, Bundle::of, halfHour, joined).to("left", asBundle);
appliances.outerJoin(electronics, Bundle::of, halfHour, joined).to("outer", asBundle);

Topology topology = builder.build();
