record Count(long count, String last) {}

class WhatWasWrong implements Processor<byte[], byte[], String, String> {
    private static final String PREFIX = "__streams.errors.";
    private ProcessorContext<String, String> context;

    @Override
    public void init(ProcessorContext<String, String> context) {
        this.context = context;
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
        String place = said(record, "topic") + "-" + said(record, "partition") + "@" + said(record, "offset");
        String exception = said(record, "exception");
        String kind = exception.substring(exception.lastIndexOf('.') + 1);  // the class, without its package
        context.forward(record.withKey(kind).withValue(place));
    }

    private static String said(Record<?, ?> record, String name) {
        return new String(record.headers().lastHeader(PREFIX + name).value(), StandardCharsets.UTF_8);
    }
}

Serde<String> text = Serdes.String();
StreamsBuilder builder = new StreamsBuilder();

builder.stream("music-dead-letters", Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
    .process(WhatWasWrong::new)
    .groupByKey(Grouped.with(text, text))
    .aggregate(
        () -> new Count(0, ""),
        (kind, place, soFar) -> new Count(soFar.count() + 1, place),
        Materialized.<String, Count, KeyValueStore<Bytes, byte[]>>as("letters-by-kind")
            .withValueSerde(serde(Count.class)))
    .toStream()
    .to("music-dead-letter-counts", Produced.with(text, serde(Count.class)));

Topology topology = builder.build();
