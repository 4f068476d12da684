StreamsBuilder builder = new StreamsBuilder();

builder.stream("soon-clicks", Consumed.with(Serdes.String(), Serdes.String()))
    .groupByKey()
    .count(Materialized.as("clicks"))
    .toStream()
    .to("soon-counts", Produced.with(Serdes.String(), Serdes.Long()));

Topology topology = builder.build();
