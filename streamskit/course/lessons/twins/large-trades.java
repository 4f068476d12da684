record Trade(String symbol, double price, int size, String venue) {}
record TradeMessage(String symbol, double price, int size) {}

Serde<String> text = Serdes.String();
Serde<Trade> avro = serde(Trade.class);
Serde<Trade> json = serde(Trade.class);
Serde<TradeMessage> protobuf = serde(TradeMessage.class);
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Trade> large = builder.stream("serde-trades", Consumed.with(text, avro))
    .filter((id, trade) -> trade.size() >= 900);
large.to("serde-json", Produced.with(text, json));
large
    .mapValues(trade -> new TradeMessage(trade.symbol(), trade.price(), trade.size()))
    .to("serde-protobuf", Produced.with(text, protobuf));

Topology topology = builder.build();
