abstract class Recipe implements Processor<String, String, String, String> {
    final String store;
    ProcessorContext<String, String> context;
    KeyValueStore<String, Long> rows;

    Recipe(String store) {
        this.store = store;
    }

    @Override
    public void init(ProcessorContext<String, String> context) {
        this.context = context;
        rows = context.getStateStore(store);
        context.schedule(Duration.ofSeconds(10), PunctuationType.STREAM_TIME, this::clean);
    }

    abstract void clean(long now);
}

class Once extends Recipe {  // forward an id only if it has not been seen for ten minutes
    Once() {
        super("once");
    }

    @Override
    public void process(Record<String, String> record) {
        Long seen = rows.get(record.value());
        if (seen == null || record.timestamp() - seen > 600_000) {
            context.forward(record);
        }
        rows.put(record.value(), record.timestamp());
    }

    @Override
    void clean(long now) {  // forget old ids, or the store grows forever
        try (KeyValueIterator<String, Long> ids = rows.all()) {
            ids.forEachRemaining(id -> {
                if (now - id.value > 600_000) {
                    rows.delete(id.key);
                }
            });
        }
    }
}

class InOrder extends Recipe {  // hold each record back for a minute of stream time, and forward them sorted by time
    InOrder() {
        super("inorder");
    }

    @Override
    public void process(Record<String, String> record) {
        rows.put(String.format("%015d %s %s", record.timestamp(), record.key(), record.value()), record.timestamp());
    }

    @Override
    void clean(long now) {
        try (KeyValueIterator<String, Long> due = rows.range(null, String.format("%015d~", now - 60_000))) {
            due.forEachRemaining(row -> {
                String[] part = row.key.split(" ");
                context.forward(new Record<>(part[1], part[2], row.value));
                rows.delete(row.key);
            });
        }
    }
}

class Expiring extends Recipe {  // a row that is older than two minutes gets a tombstone
    Expiring() {
        super("expiring");
    }

    @Override
    public void process(Record<String, String> record) {
        rows.put(record.key(), record.timestamp());
        context.forward(record);
    }

    @Override
    void clean(long now) {
        try (KeyValueIterator<String, Long> all = rows.all()) {
            all.forEachRemaining(row -> {
                if (now - row.value > 120_000) {
                    context.forward(new Record<>(row.key, null, now));
                    rows.delete(row.key);
                }
            });
        }
    }
}

Serde<String> text = Serdes.String();
Map<String, ProcessorSupplier<String, String, String, String>> recipes = new LinkedHashMap<>();
recipes.put("once", Once::new);
recipes.put("inorder", InOrder::new);
recipes.put("expiring", Expiring::new);
StreamsBuilder builder = new StreamsBuilder();

KStream<String, String> orders = builder.stream("orders", Consumed.with(text, text));
recipes.forEach((name, recipe) -> {
    builder.addStateStore(
        Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), text, Serdes.Long()));
    orders.process(recipe, name).to(name, Produced.with(text, text));
});

Topology topology = builder.build();
