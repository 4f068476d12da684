record Trade(String symbol, double price, int size) {}
record Statistics(long count, double minPrice, double sumPrice) {
    Statistics with(Trade trade) {
        return new Statistics(count + 1, Math.min(minPrice, trade.price()), sumPrice + trade.price());
    }
}

Duration size = Duration.ofSeconds(5);
StreamsBuilder builder = new StreamsBuilder();

KTable<Windowed<String>, Statistics> statistics = builder
    .stream("trades", Consumed.with(Serdes.String(), serde(Trade.class)))
    .filter((symbol, trade) -> trade.price() > 0)
    .groupByKey()
    .windowedBy(TimeWindows.ofSizeWithNoGrace(size).advanceBy(Duration.ofSeconds(1)))
    .aggregate(
        () -> new Statistics(0, Double.MAX_VALUE, 0),
        (symbol, trade, sums) -> sums.with(trade),
        Materialized.<String, Statistics, WindowStore<Bytes, byte[]>>as("trade-aggregates")
            .withValueSerde(serde(Statistics.class))
            .withRetention(Duration.ofDays(1)));
statistics.mapValues(sums -> sums.sumPrice() / sums.count())
    .toStream()
    .to("stats-out", Produced.with(
        WindowedSerdes.timeWindowedSerdeFrom(String.class, size.toMillis()), Serdes.Double()));

Topology topology = builder.build();
