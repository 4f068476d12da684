record Parcel(String order, String city) {}
record Cost(String order, long cost) {}

Serde<String> text = Serdes.String();
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Parcel> parcels = builder.stream("parcels", Consumed.with(text, serde(Parcel.class)));
GlobalKTable<String, Long> shipping = builder.globalTable("shipping", Consumed.with(text, Serdes.Long()));
parcels
    .join(shipping, (user, parcel) -> parcel.city(), (parcel, cost) -> new Cost(parcel.order(), cost))
    .to("costs", Produced.with(text, serde(Cost.class)));

Topology topology = builder.build();
