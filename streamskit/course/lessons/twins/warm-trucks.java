class Sort implements Processor<String, Double, String, Double> {
    private ProcessorContext<String, Double> context;

    @Override
    public void init(ProcessorContext<String, Double> context) {
        this.context = context;
    }

    @Override
    public void process(Record<String, Double> record) {
        context.forward(record, record.value() == null ? "broken" : "stays-warm");
    }
}

class StaysWarm implements Processor<String, Double, String, String> {
    private ProcessorContext<String, String> context;
    private KeyValueStore<String, Double> last;

    @Override
    public void init(ProcessorContext<String, String> context) {
        this.context = context;
        last = context.getStateStore("last");
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

Topology topology = new Topology()
    .addSource("readings", text.deserializer(), degrees.deserializer(), "truck-readings")
    .addProcessor("sort", Sort::new, "readings")
    .addProcessor("stays-warm", StaysWarm::new, "sort")
    .addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("last"), text, degrees), "stays-warm")
    .addSink("broken", "broken-readings", text.serializer(), degrees.serializer(), "sort")
    .addSink("alarms", "truck-reports", text.serializer(), text.serializer(), "stays-warm");
