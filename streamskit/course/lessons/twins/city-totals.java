record Account(String city, int amount) {}

StreamsBuilder builder = new StreamsBuilder();

KTable<String, Account> accounts = builder.table(
    "ktable-accounts", Consumed.with(Serdes.String(), serde(Account.class)), Materialized.as("accounts"));
accounts
    .groupBy((name, a) -> KeyValue.pair(a.city(), a.amount()), Grouped.with(Serdes.String(), Serdes.Integer()))
    .reduce((total, added) -> total + added, (total, old) -> total - old, Materialized.as("city-totals"))
    .toStream()
    .to("ktable-totals", Produced.with(Serdes.String(), Serdes.Integer()));

Topology topology = builder.build();
