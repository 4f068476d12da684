record Invoice(String CustomerType, String CustomerCardNo, double TotalAmount) {}
record Notification(String Card, int Task, double Total) {}

class RewardsPartitioner implements StreamPartitioner<String, Invoice> {
    @Override
    public Optional<Set<Integer>> partitions(String topic, String store, Invoice invoice, int numPartitions) {
        CRC32 sum = new CRC32();
        sum.update(invoice.CustomerCardNo().getBytes(StandardCharsets.UTF_8));
        return Optional.of(Set.of((int) (sum.getValue() % numPartitions)));
    }
}

class RewardsByCard implements FixedKeyProcessor<String, Invoice, Notification> {
    private FixedKeyProcessorContext<String, Notification> context;
    private KeyValueStore<String, Double> points;

    @Override
    public void init(FixedKeyProcessorContext<String, Notification> context) {
        this.context = context;
        points = context.getStateStore("customer-rewards");
    }

    @Override
    public void process(FixedKeyRecord<String, Invoice> record) {
        String card = record.value().CustomerCardNo();
        Double before = points.get(card);
        double total = (before == null ? 0 : before) + record.value().TotalAmount() * 0.02;
        points.put(card, total);
        context.forward(record.withValue(new Notification(card, context.taskId().partition(), total)));
    }
}

Serde<String> text = Serdes.String();
Serde<Invoice> invoice = serde(Invoice.class);
Repartitioned<String, Invoice> chosen =
    Repartitioned.with(text, invoice).withName("chosen").withStreamPartitioner(new RewardsPartitioner());
StreamsBuilder builder = new StreamsBuilder();

builder.addStateStore(
    Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("customer-rewards"), text, Serdes.Double()));
builder.stream("pos-invoices", Consumed.with(text, invoice))
    .filter((store, i) -> i.CustomerType().equals("PRIME"))
    .repartition(chosen)
    .processValues(RewardsByCard::new, "customer-rewards")
    .to("pos-notifications-chosen", Produced.with(text, serde(Notification.class)));

Topology topology = builder.build();
