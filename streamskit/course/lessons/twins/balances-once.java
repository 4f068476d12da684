StreamsBuilder builder = new StreamsBuilder();

builder.stream("once-deposits", Consumed.with(Serdes.String(), Serdes.Long()))
    .groupByKey()
    .aggregate(
        () -> 0L,
        (account, amount, total) -> total + amount,
        Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("balances").withValueSerde(Serdes.Long()))
    .toStream()
    .to("once-balances", Produced.with(Serdes.String(), Serdes.Long()));

Topology topology = builder.build();
