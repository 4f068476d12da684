record Invoice(String CustomerType, String CustomerCardNo, double TotalAmount) {}
record Notification(int Task, double Earned, double Total) {}

class Rewards implements FixedKeyProcessor<String, Invoice, Notification> {
    private FixedKeyProcessorContext<String, Notification> context;
    private KeyValueStore<String, Double> points;

    @Override
    public void init(FixedKeyProcessorContext<String, Notification> context) {
        this.context = context;
        points = context.getStateStore("customer-rewards");
    }

    @Override
    public void process(FixedKeyRecord<String, Invoice> record) {
        double earned = record.value().TotalAmount() * 0.02;
        Double before = points.get(record.key());
        double total = (before == null ? 0 : before) + earned;
        points.put(record.key(), total);
        context.forward(record.withValue(new Notification(context.taskId().partition(), earned, total)));
    }
}

Serde<String> text = Serdes.String();
Serde<Invoice> invoice = serde(Invoice.class);
StreamsBuilder builder = new StreamsBuilder();

builder.addStateStore(
    Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("customer-rewards"), text, Serdes.Double()));
builder.stream("pos-invoices", Consumed.with(text, invoice))
    .filter((store, i) -> i.CustomerType().equals("PRIME"))
    .selectKey((store, i) -> i.CustomerCardNo())
    .repartition(Repartitioned.with(text, invoice).withName("rewards"))
    .processValues(Rewards::new, "customer-rewards")
    .to("pos-notifications", Produced.with(text, serde(Notification.class)));

Topology topology = builder.build();
