Serde<String> text = Serdes.String();
StreamsBuilder builder = new StreamsBuilder();

KTable<String, String> allTicks =
    builder.table("stock-ticks", Consumed.with(text, text), Materialized.as("all-ticks"));
KTable<String, String> drinks = allTicks.filter(
    (ticker, price) -> ticker.matches("KO|PEP"),
    Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("drinks").withKeySerde(text).withValueSerde(text));
allTicks.toStream().print(Printed.<String, String>toSysOut().withLabel("all ticks"));
drinks.toStream().print(Printed.<String, String>toSysOut().withLabel("drinks"));

Topology topology = builder.build();
