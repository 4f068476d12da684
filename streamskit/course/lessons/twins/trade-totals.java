record Trade(String symbol, double price, int size) {}
record Total(long trades, double worth) {
    Total with(Trade trade) {
        return new Total(trades + 1, worth + trade.price() * trade.size());
    }
}

Serde<Total> total = serde(Total.class);
StreamsBuilder builder = new StreamsBuilder();

KGroupedStream<String, Trade> trades =
    builder.stream("iq-trades", Consumed.with(Serdes.String(), serde(Trade.class))).groupByKey();
trades.aggregate(
    () -> new Total(0, 0),
    (symbol, trade, sums) -> sums.with(trade),
    Materialized.<String, Total, KeyValueStore<Bytes, byte[]>>as("totals").withValueSerde(total));
trades.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10))).aggregate(
    () -> new Total(0, 0),
    (symbol, trade, sums) -> sums.with(trade),
    Materialized.<String, Total, WindowStore<Bytes, byte[]>>as("by-time")
        .withValueSerde(total)
        .withRetention(Duration.ofDays(1)));
builder.table(
    "iq-prices",
    Consumed.with(Serdes.String(), Serdes.Double()),
    Materialized.as(Stores.persistentVersionedKeyValueStore("prices", Duration.ofHours(1))));

Topology topology = builder.build();
