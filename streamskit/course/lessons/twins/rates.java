Path service = Path.of("is-up");

class Rate implements Processor<String, String, String, String> {
    private ProcessorContext<String, String> context;
    private KeyValueStore<String, String> rates;

    @Override
    public void init(ProcessorContext<String, String> context) {
        this.context = context;
        rates = context.getStateStore("rates");
    }

    @Override
    public void process(Record<String, String> record) {
        if (!Files.exists(service)) {
            throw new IllegalStateException("the rate service does not answer");
        }
        rates.put(record.key(), record.value());
        context.forward(record);
    }
}

Serde<String> text = Serdes.String();
StreamsBuilder builder = new StreamsBuilder();

builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("rates"), text, text));
builder.stream("rates-in", Consumed.with(text, text))
    .process(Rate::new, "rates")
    .to("rates-out", Produced.with(text, text));

Topology topology = builder.build();
