record Trade(String symbol, double price, int size) {}
record Total(long trades, long shares, String seal) {
    Total with(Trade trade) {
        return new Total(trades + 1, shares + trade.size(), sealOf(trade.symbol()));
    }

    static String sealOf(String symbol) {
        try {
            PBEKeySpec slow = new PBEKeySpec(symbol.toCharArray(), "salt".getBytes(), 1_000, 256);
            byte[] seal = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(slow).getEncoded();
            return HexFormat.of().formatHex(seal).substring(0, 8);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }
}

StreamsBuilder builder = new StreamsBuilder();

builder.stream("elastic-trades", Consumed.with(Serdes.String(), serde(Trade.class)))
    .groupByKey()
    .aggregate(
        () -> new Total(0, 0, ""),
        (symbol, trade, total) -> total.with(trade),
        Materialized.<String, Total, KeyValueStore<Bytes, byte[]>>as("totals").withValueSerde(serde(Total.class)));

Topology topology = builder.build();
