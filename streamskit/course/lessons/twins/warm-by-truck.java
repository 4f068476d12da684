class StaysWarm implements Processor<String, Double, String, String> {
    private final String store;
    private ProcessorContext<String, String> context;
    private KeyValueStore<String, Double> last;

    StaysWarm(String store) {
        this.store = store;
    }

    @Override
    public void init(ProcessorContext<String, String> context) {
        this.context = context;
        last = context.getStateStore(store);
    }

    @Override
    public void process(Record<String, Double> record) {
        Double before = last.get(record.key());
        if (before != null && before > 8 && record.value() > 8) {
            context.forward(record.withValue(before + " °C, and then " + record.value() + " °C"));
        }
        last.put(record.key(), record.value());
    }
}

Serde<String> text = Serdes.String();
Serde<Double> degrees = Serdes.Double();
StreamsBuilder builder = new StreamsBuilder();
for (String name : List.of("last", "last-by-truck")) {
    builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), text, degrees));
}

KStream<String, Double> readings = builder.stream("truck-readings", Consumed.with(text, degrees));
readings
    .process(() -> new StaysWarm("last"), "last")
    .to("truck-reports", Produced.with(text, text));
readings
    .repartition(Repartitioned.with(text, degrees).withName("by-truck"))
    .process(() -> new StaysWarm("last-by-truck"), "last-by-truck")
    .to("truck-reports-by-truck", Produced.with(text, text));

Topology topology = builder.build();
