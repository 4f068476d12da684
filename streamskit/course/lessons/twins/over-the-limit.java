class OverLimit implements Processor<String, Double, String, Double> {
    private ProcessorContext<String, Double> context;
    private TimestampedKeyValueStore<String, Double> limits;

    @Override
    public void init(ProcessorContext<String, Double> context) {
        this.context = context;
        limits = context.getStateStore("limits");
    }

    @Override
    public void process(Record<String, Double> record) {
        ValueAndTimestamp<Double> limit = limits.get(record.key());
        if (limit != null && record.value() > limit.value()) {
            context.forward(record);
        }
    }
}

Serde<String> text = Serdes.String();
Serde<Double> degrees = Serdes.Double();
StreamsBuilder builder = new StreamsBuilder();

builder.table("truck-limits", Consumed.with(text, degrees), Materialized.as("limits"));
builder.stream("truck-readings", Consumed.with(text, degrees))
    .filter((truck, reading) -> reading != null && reading >= -40 && reading <= 40)
    .process(OverLimit::new, "limits")
    .groupByKey(Grouped.with(text, degrees))
    .count(Materialized.as("times-over"))
    .toStream()
    .to("truck-reports", Produced.with(text, Serdes.Long()));

Topology topology = builder.build();
