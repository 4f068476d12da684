record User(String name, String city) {}
record Card(String city, long points) {}

Serde<String> text = Serdes.String();
StreamsBuilder builder = new StreamsBuilder();

KTable<String, Long> points = builder.table("points", Consumed.with(text, Serdes.Long()));
KTable<String, User> members = builder.table("users", Consumed.with(text, serde(User.class)));
members
    .join(points, (user, earned) -> new Card(user.city(), earned))
    .toStream()
    .to("cards", Produced.with(text, serde(Card.class)));

Topology topology = builder.build();
