record Trade(String symbol, double price, int size) {}
record Statistics(long count, double minPrice, double sumPrice) {
    Statistics with(Trade trade) {
        return new Statistics(count + 1, Math.min(minPrice, trade.price()), sumPrice + trade.price());
    }
}

StreamsBuilder builder = new StreamsBuilder();

builder.stream("trades", Consumed.with(Serdes.String(), serde(Trade.class)))
    .groupByKey()
    .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(5)).advanceBy(Duration.ofSeconds(1)))
    .aggregate(
        () -> new Statistics(0, Double.POSITIVE_INFINITY, 0),
        (symbol, trade, sums) -> sums.with(trade),
        Materialized.<String, Statistics, WindowStore<Bytes, byte[]>>as("trade-aggregates")
            .withValueSerde(serde(Statistics.class))
            .withRetention(Duration.ofDays(1)));

Topology topology = builder.build();
