record Trade(String symbol, double price, int size) {}

Duration tenSeconds = Duration.ofSeconds(10);
StreamsBuilder builder = new StreamsBuilder();

builder.stream("first-trades", Consumed.with(Serdes.String(), serde(Trade.class)))
    .groupByKey()
    .windowedBy(TimeWindows.ofSizeAndGrace(tenSeconds, Duration.ofHours(1)))
    .count(Materialized.as("trades-so-far"))
    .toStream()
    .to("first-counts", Produced.with(
        WindowedSerdes.timeWindowedSerdeFrom(String.class, tenSeconds.toMillis()), Serdes.Long()));

Topology topology = builder.build();
