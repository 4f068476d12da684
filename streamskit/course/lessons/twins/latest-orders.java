Serde<String> text = Serdes.String();
StreamsBuilder builder = new StreamsBuilder();

builder.table("ktable-orders", Consumed.with(text, text))
    .mapValues(
        order -> Integer.parseInt(order.substring(order.indexOf('-') + 1)),
        Materialized.<String, Integer, KeyValueStore<Bytes, byte[]>>as("latest")
            .withKeySerde(text)
            .withValueSerde(Serdes.Integer()))
    .toStream()
    .to("ktable-latest", Produced.with(text, Serdes.Integer()));

Topology topology = builder.build();
