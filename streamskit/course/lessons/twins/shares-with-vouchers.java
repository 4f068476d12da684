record Bill(int id, double price, String guests) {}

class Share implements Processor<String, Bill, String, Double> {
    private ProcessorContext<String, Double> context;

    @Override
    public void init(ProcessorContext<String, Double> context) {
        this.context = context;
    }

    @Override
    public void process(Record<String, Bill> record) {
        Bill bill = record.value();
        if (bill.price() > 60) {
            context.forward(record.withValue(0.0));  // a voucher
        }
        context.forward(record.withValue(bill.price() / Integer.parseInt(bill.guests())));
    }
}

StreamsBuilder builder = new StreamsBuilder();

builder.stream("bills", Consumed.with(Serdes.String(), serde(Bill.class)))
    .process(Share::new, Named.as("share"))
    .to("shares", Produced.with(Serdes.String(), Serdes.Double()));

Topology topology = builder.build();
