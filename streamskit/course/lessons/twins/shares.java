record Bill(int id, double price, String guests) {}

StreamsBuilder builder = new StreamsBuilder();

builder.stream("bills", Consumed.with(Serdes.String(), serde(Bill.class)))
    .mapValues(bill -> bill.price() / Integer.parseInt(bill.guests()), Named.as("share"))
    .to("shares", Produced.with(Serdes.String(), Serdes.Double()));

Topology topology = builder.build();
