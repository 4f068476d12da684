record Trade(String symbol, double price, int size) {}
record Total(long trades, long shares, long process) {
    Total with(Trade trade) {
        return new Total(trades + 1, shares + trade.size(), ProcessHandle.current().pid());
    }
}

StreamsBuilder builder = new StreamsBuilder();

builder.stream("prod-trades", Consumed.with(Serdes.String(), serde(Trade.class)))
    .groupByKey()
    .aggregate(
        () -> new Total(0, 0, 0),
        (symbol, trade, total) -> total.with(trade),
        Materialized.<String, Total, KeyValueStore<Bytes, byte[]>>as("totals").withValueSerde(serde(Total.class)));

Topology topology = builder.build();
