class Trace implements FixedKeyProcessor<String, Double, Double> {
    private FixedKeyProcessorContext<String, Double> context;

    @Override
    public void init(FixedKeyProcessorContext<String, Double> context) {
        this.context = context;
    }

    @Override
    public void process(FixedKeyRecord<String, Double> record) {
        context.recordMetadata().ifPresent(origin -> {
            String place = origin.topic() + "-" + origin.partition() + "@" + origin.offset();
            record.headers().add("from", place.getBytes(StandardCharsets.UTF_8));
        });
        context.forward(record);
    }
}

StreamsBuilder builder = new StreamsBuilder();

builder.stream("truck-readings", Consumed.with(Serdes.String(), Serdes.Double()))
    .processValues(Trace::new)
    .to("truck-reports", Produced.with(Serdes.String(), Serdes.Double()));

Topology topology = builder.build();
