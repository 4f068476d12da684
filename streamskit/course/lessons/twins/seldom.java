Serde<String> text = Serdes.String();
StreamsBuilder builder = new StreamsBuilder();

builder.table("ktable-orders", Consumed.with(text, text))
    .suppress(Suppressed.untilTimeLimit(Duration.ofSeconds(20), Suppressed.BufferConfig.unbounded()))
    .toStream()
    .to("seldom", Produced.with(text, text));

Topology topology = builder.build();
