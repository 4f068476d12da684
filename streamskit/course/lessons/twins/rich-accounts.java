record Account(String city, int amount) {}

Serde<Account> account = serde(Account.class);
StreamsBuilder builder = new StreamsBuilder();

KTable<String, Account> accounts =
    builder.table("ktable-accounts", Consumed.with(Serdes.String(), account), Materialized.as("accounts"));
accounts
    .filter((name, a) -> a.amount() > 500,
        Materialized.<String, Account, KeyValueStore<Bytes, byte[]>>as("rich")
            .withKeySerde(Serdes.String())
            .withValueSerde(account))
    .toStream()
    .to("ktable-rich-cached", Produced.with(Serdes.String(), account));
accounts
    .groupBy((name, a) -> KeyValue.pair(a.city(), a.amount()), Grouped.with(Serdes.String(), Serdes.Integer()))
    .reduce((total, added) -> total + added, (total, old) -> total - old, Materialized.as("city-totals"))
    .toStream()
    .to("ktable-totals-cached", Produced.with(Serdes.String(), Serdes.Integer()));

Topology topology = builder.build();
