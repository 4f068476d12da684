/** Says of each record which partition it came from, and which task has it now. */
class Report implements Processor<String, Long, String, String> {
    private ProcessorContext<String, String> context;

    @Override
    public void init(ProcessorContext<String, String> context) {
        this.context = context;
    }

    @Override
    public void process(Record<String, Long> record) {
        int partition = context.recordMetadata().orElseThrow().partition();
        context.forward(record.withValue(partition + " " + context.taskId().partition()));
    }
}

StreamsBuilder builder = new StreamsBuilder();

builder.stream("task-totals", Consumed.with(Serdes.String(), Serdes.Long()))
    .process(Report::new)
    .to("task-reports", Produced.with(Serdes.String(), Serdes.String()));

Topology topology = builder.build();
