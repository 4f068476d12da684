class Silence implements Processor<String, Double, String, String> {
    private ProcessorContext<String, String> context;
    private KeyValueStore<String, Long> heard;

    @Override
    public void init(ProcessorContext<String, String> context) {
        this.context = context;
        heard = context.getStateStore("heard");
        context.schedule(Duration.ofMinutes(1), PunctuationType.WALL_CLOCK_TIME, this::lookRound);
    }

    @Override
    public void process(Record<String, Double> record) {
        heard.put(record.key(), context.currentSystemTimeMs());
    }

    private void lookRound(long now) {
        try (KeyValueIterator<String, Long> trucks = heard.all()) {
            while (trucks.hasNext()) {
                KeyValue<String, Long> truck = trucks.next();
                long silent = now - truck.value;
                if (silent >= 120_000) {
                    context.forward(new Record<>(truck.key, "silent for " + silent / 1000 + " s", now));
                    heard.delete(truck.key);
                }
            }
        }
    }
}

StreamsBuilder builder = new StreamsBuilder();

builder.addStateStore(
    Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("heard"), Serdes.String(), Serdes.Long()));
builder.stream("truck-readings", Consumed.with(Serdes.String(), Serdes.Double()))
    .process(Silence::new, "heard")
    .to("truck-reports", Produced.with(Serdes.String(), Serdes.String()));

Topology topology = builder.build();
