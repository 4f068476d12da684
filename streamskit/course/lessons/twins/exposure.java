record Deal(String deal, String desk, String side, long quantity, double price) {}
record Quote(double bid, double ask) {}
record Position(long quantity, double paid) {
    Position booked(Deal deal) {
        long signed = deal.side().equals("BUY") ? deal.quantity() : -deal.quantity();
        return new Position(quantity + signed, paid + signed * deal.price());
    }
}
record QuoteSums(long count, double sumBid, double sumAsk) {
    QuoteSums added(Quote quote) {
        return new QuoteSums(count + 1, sumBid + quote.bid(), sumAsk + quote.ask());
    }
}
record Exposure(long quantity, double bid, double ask, double spread, double worth) {
    static Exposure of(Position held, QuoteSums quotes) {
        double bid = quotes.sumBid() / quotes.count();
        double ask = quotes.sumAsk() / quotes.count();
        double worth = held.quantity() * (held.quantity() < 0 ? ask : bid);
        return new Exposure(held.quantity(), bid, ask, ask - bid, worth);
    }
}
record Portfolio(long assets, double net, double gross) {
    Portfolio plus(Exposure row, int sign) {
        return new Portfolio(assets + sign, net + sign * row.worth(), gross + sign * Math.abs(row.worth()));
    }
}

Serde<String> text = Serdes.String();
StreamsBuilder builder = new StreamsBuilder();

KGroupedStream<String, Deal> deals =
    builder.stream("risk-deals", Consumed.with(text, serde(Deal.class))).groupByKey();
KGroupedStream<String, Quote> quotes =
    builder.stream("risk-quotes", Consumed.with(text, serde(Quote.class))).groupByKey();

deals.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofDays(1), Duration.ofHours(1)))
    .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("deals-a-day").withRetention(Duration.ofDays(31)));
KTable<String, Position> positions = deals.aggregate(
    () -> new Position(0, 0),
    (asset, deal, position) -> position.booked(deal),
    Materialized.<String, Position, KeyValueStore<Bytes, byte[]>>as("positions")
        .withValueSerde(serde(Position.class)));
KTable<String, QuoteSums> quoteSums = quotes.aggregate(
    () -> new QuoteSums(0, 0, 0),
    (asset, quote, sums) -> sums.added(quote),
    Materialized.<String, QuoteSums, KeyValueStore<Bytes, byte[]>>as("quote-sums")
        .withValueSerde(serde(QuoteSums.class)));
KTable<String, Exposure> exposures = positions.join(quoteSums, Exposure::of,
    Materialized.<String, Exposure, KeyValueStore<Bytes, byte[]>>as("exposure")
        .withKeySerde(text)
        .withValueSerde(serde(Exposure.class)));
exposures.toStream().to("risk-exposure", Produced.with(text, serde(Exposure.class)));
exposures
    .groupBy((asset, row) -> KeyValue.pair("all", row), Grouped.with("portfolio", text, serde(Exposure.class)))
    .aggregate(
        () -> new Portfolio(0, 0, 0),
        (name, row, kept) -> kept.plus(row, 1),
        (name, row, kept) -> kept.plus(row, -1),
        Materialized.<String, Portfolio, KeyValueStore<Bytes, byte[]>>as("portfolio")
            .withValueSerde(serde(Portfolio.class)));

Topology topology = builder.build();
