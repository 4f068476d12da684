import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.time.Instant;
import java.util.*;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.*;
import org.apache.kafka.streams.test.TestRecord;

/** Builds programs that are described in JSON, one a line, and writes what Kafka Streams' own test driver makes of them. */
public class RandomPrograms {
    static final ObjectMapper MAPPER = new ObjectMapper();
    static final String[] LETTERS = {"a", "b", "c", "d"};

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            ObjectNode outcome = MAPPER.createObjectNode();
            try {
                run(MAPPER.readTree(line), outcome);
            } catch (Exception error) {
                ArrayNode causes = outcome.putArray("failure");
                for (Throwable each = error; each != null; each = each.getCause()) {
                    causes.add(each.getClass().getSimpleName() + ": " + each.getMessage());
                }
            }
            System.out.println(MAPPER.writeValueAsString(outcome));
        }
    }

    static void run(JsonNode program, ObjectNode outcome) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        List<Object> nodes = new ArrayList<>();
        Map<String, Deserializer<?>> outputs = new LinkedHashMap<>();
        int number = 0;
        for (JsonNode step : program.get("steps")) {
            if (step.get("op").asText().equals("skip")) {
                if (nodes.size() <= number) {
                    nodes.add(null);
                }
                number++;
                continue; // the second node of a split, which is there already
            }
            number++;
            new Step(builder, nodes, outputs, step).add();
        }
        Topology topology = builder.build();
        outcome.put("describe", topology.describe().toString());
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "oracle");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:1");
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, program.path("cache").asBoolean() ? 10_000_000 : 0);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.LongSerde.class);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("random").toString());
        if (program.path("continue").asBoolean()) {
            properties.put(StreamsConfig.DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueExceptionHandler.class);
            properties.put(StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueProcessingExceptionHandler.class);
        }
        properties.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0);
        properties.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0);
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, properties, Instant.EPOCH)) {
            pipe(driver, program.get("records"), outputs, outcome);
            stores(driver, outcome.putObject("stores"));
            if (program.path("queries").size() > 0) {
                ArrayNode answers = outcome.putArray("answers");
                program.get("queries").forEach(query -> answers.add(answer(driver, query)));
            }
        }
    }

    static void pipe(TopologyTestDriver driver, JsonNode records, Map<String, Deserializer<?>> outputs, ObjectNode outcome) {
        ObjectNode written = outcome.putObject("outputs");
        ArrayNode dropped = outcome.putArray("dropped");
        outputs.keySet().forEach(written::putArray);
        double before = 0;
        int number = 0;
        for (JsonNode record : records) {
            if (record.has("advance")) {
                driver.advanceWallClockTime(Duration.ofMillis(record.get("advance").asLong()));
            } else {
                RecordHeaders headers = new RecordHeaders();
                record.path("headers").fields().forEachRemaining(each -> headers.add(each.getKey(), each.getValue().asText().getBytes(StandardCharsets.UTF_8)));
                byte[] value = record.path("bad").asBoolean() ? "bad".getBytes() : new LongSerializer().serialize("", number(record.get("value")));
                driver.createInputTopic(record.get("topic").asText(), new StringSerializer(), new ByteArraySerializer())
                    .pipeInput(new TestRecord<>(text(record.get("key")), value, headers, record.get("timestamp").asLong()));
            }
            for (Map.Entry<String, Deserializer<?>> output : outputs.entrySet()) {
                TestOutputTopic<?, Long> topic = driver.createOutputTopic(output.getKey(), output.getValue(), new LongDeserializer());
                while (!topic.isEmpty()) {
                    TestRecord<?, Long> read = topic.readRecord();
                    ObjectNode row = row(((ArrayNode) written.get(output.getKey())).addObject(), read.key(), read.value());
                    row.put("timestamp", read.timestamp()).put("after_step", number);
                    if (read.headers().iterator().hasNext()) {
                        ObjectNode headers = row.putObject("headers");
                        read.headers().forEach(each -> headers.put(each.key(), new String(each.value(), StandardCharsets.UTF_8)));
                    }
                }
            }
            double now = driver.metrics().entrySet().stream()
                .filter(each -> each.getKey().name().equals("dropped-records-total"))
                .mapToDouble(each -> (Double) each.getValue().metricValue()).sum();
            if (now > before) {
                dropped.addArray().add(number).add((long) (now - before));
            }
            before = now;
            number++;
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void stores(TopologyTestDriver driver, ObjectNode told) {
        for (Map.Entry<String, StateStore> each : driver.getAllStateStores().entrySet()) {
            String name = each.getKey();
            if (!name.startsWith("s-") || each.getValue() instanceof VersionedKeyValueStore) {
                continue;
            }
            ArrayNode rows = told.putArray(name);
            Object store = each.getValue();
            KeyValueIterator<?, ?> all;
            if (store instanceof TimestampedKeyValueStore) {
                all = ((TimestampedKeyValueStore) store).all();
            } else if (store instanceof TimestampedWindowStore) {
                all = ((TimestampedWindowStore) store).all();
            } else if (store instanceof WindowStore) {
                all = ((WindowStore) store).all();
            } else if (store instanceof SessionStore) {
                all = ((SessionStore) store).fetch(null, null);
            } else if (store instanceof KeyValueStore) {
                all = ((KeyValueStore) store).all();
            } else {
                told.put(name, "of another kind: " + store.getClass());
                continue;
            }
            try (KeyValueIterator<?, ?> rest = all) {
                while (rest.hasNext()) {
                    KeyValue<?, ?> one = rest.next();
                    if (one.value instanceof ValueAndTimestamp) {
                        ValueAndTimestamp<?> value = (ValueAndTimestamp<?>) one.value;
                        row(rows.addObject(), one.key, value.value()).put("timestamp", value.timestamp());
                    } else {
                        row(rows.addObject(), one.key, one.value);
                    }
                }
            }
        }
    }

    /** Returns what a store answers to a question. */
    static JsonNode answer(TopologyTestDriver driver, JsonNode query) {
        String name = query.get("store").asText(), op = query.get("op").asText();
        JsonNode args = query.get("args");
        String one = args.size() > 0 ? text(args.get(0)) : null, two = args.size() > 1 && !args.get(1).isNumber() ? text(args.get(1)) : null;
        Instant from = args.size() > 1 ? Instant.ofEpochMilli(args.get(args.size() - 2).asLong()) : null;
        Instant to = args.size() > 0 ? Instant.ofEpochMilli(args.get(args.size() - 1).asLong()) : null;
        switch (query.get("kind").asText()) {
            case "key-value": return ofRows(driver.getKeyValueStore(name), op, one, two);
            case "window": return ofWindows(driver.getWindowStore(name), op, one, two, from, to);
            case "session": return ofSessions(driver.getSessionStore(name), op, one, two, from, to);
            default:
                VersionedKeyValueStore<String, Long> versions = driver.getVersionedKeyValueStore(name);
                VersionedRecord<Long> found = op.equals("get") ? versions.get(one) : versions.get(one, to.toEpochMilli());
                return found == null ? MAPPER.nullNode() : MAPPER.createObjectNode().put("value", found.value()).put("timestamp", found.timestamp());
        }
    }

    static JsonNode ofRows(KeyValueStore<String, Long> rows, String op, String one, String two) {
        switch (op) {
            case "get": return MAPPER.valueToTree(rows.get(one));
            case "range": return list(rows.range(one, two));
            case "reverse_range": return list(rows.reverseRange(one, two));
            case "prefix_scan": return list(rows.prefixScan(one, new StringSerializer()));
            case "reverse_all": return list(rows.reverseAll());
            default: return list(rows.all());
        }
    }

    static JsonNode ofWindows(WindowStore<String, Long> windows, String op, String one, String two, Instant from, Instant to) {
        switch (op) {
            case "fetch": return starts(windows.fetch(one, from, to));
            case "backward_fetch": return starts(windows.backwardFetch(one, from, to));
            case "fetch_range": return list(windows.fetch(one, two, from, to));
            case "backward_fetch_range": return list(windows.backwardFetch(one, two, from, to));
            case "fetch_all": return list(windows.fetchAll(from, to));
            case "backward_fetch_all": return list(windows.backwardFetchAll(from, to));
            case "backward_all": return list(windows.backwardAll());
            default: return list(windows.all());
        }
    }

    static JsonNode ofSessions(SessionStore<String, Long> sessions, String op, String one, String two, Instant from, Instant to) {
        switch (op) {
            case "fetch": return list(sessions.fetch(one));
            case "backward_fetch": return list(sessions.backwardFetch(one));
            case "fetch_range": return list(sessions.fetch(one, two));
            case "backward_fetch_range": return list(sessions.backwardFetch(one, two));
            case "fetch_session": return MAPPER.valueToTree(sessions.fetchSession(one, from, to));
            case "find_sessions": return list(sessions.findSessions(one, from, to));
            case "backward_find_sessions": return list(sessions.backwardFindSessions(one, from, to));
            case "find_sessions_range": return list(sessions.findSessions(one, two, from, to));
            default: return list(sessions.backwardFindSessions(one, two, from, to));
        }
    }

    static ArrayNode list(KeyValueIterator<?, Long> found) {
        ArrayNode rows = MAPPER.createArrayNode();
        try (KeyValueIterator<?, Long> rest = found) {
            rest.forEachRemaining(each -> row(rows.addObject(), each.key, each.value));
        }
        return rows;
    }

    static ArrayNode starts(WindowStoreIterator<Long> found) {
        ArrayNode rows = MAPPER.createArrayNode();
        try (WindowStoreIterator<Long> rest = found) {
            rest.forEachRemaining(each -> rows.addObject().put("window_start", each.key).put("value", each.value));
        }
        return rows;
    }

    static ObjectNode row(ObjectNode row, Object key, Object value) {
        if (key instanceof Windowed) {
            Window window = ((Windowed<?>) key).window();
            row.put("key", (String) ((Windowed<?>) key).key());
            row.putObject("window").put("start", window.start()).put("end", window.end());
        } else {
            row.put("key", (String) key);
        }
        return row.put("value", (Long) value);
    }

    static String text(JsonNode node) {
        return node.isNull() ? null : node.asText();
    }

    static Long number(JsonNode node) {
        return node.isNull() ? null : node.asLong();
    }

    static Long plus(Long value, long number) {
        return value == null ? null : value + number;
    }

    static long or(Long value, long otherwise) {
        return value == null ? otherwise : value;
    }

    static boolean holds(Long value, int number) {
        return or(value, 1) % 3 != number % 3;
    }

    static String letter(Long value) {
        return value == null ? null : LETTERS[(int) Math.floorMod(value, 4L)];
    }

    /** A stream or table, its windows if its keys have some, and the width of these. */
    static class WindowedTable {
        final Object node;
        final boolean sessions;
        final long size;

        WindowedTable(Object node, boolean sessions, long size) {
            this.node = node;
            this.sessions = sessions;
            this.size = size;
        }
    }

    /** One step of a program: makes a node of those before it. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    static class Step {
        final StreamsBuilder builder;
        final List<Object> nodes;
        final Map<String, Deserializer<?>> outputs;
        final JsonNode step;

        Step(StreamsBuilder builder, List<Object> nodes, Map<String, Deserializer<?>> outputs, JsonNode step) {
            this.builder = builder;
            this.nodes = nodes;
            this.outputs = outputs;
            this.step = step;
        }

        KStream<String, Long> stream() {
            return (KStream<String, Long>) nodes.get(step.get("of").asInt());
        }

        KTable<String, Long> table() {
            return (KTable<String, Long>) nodes.get(step.get("of").asInt());
        }

        WindowedTable windowed() {
            return (WindowedTable) nodes.get(step.get("of").asInt());
        }

        KTable<Windowed<String>, Long> rows(String of) {
            return (KTable<Windowed<String>, Long>) ((WindowedTable) nodes.get(step.get(of).asInt())).node;
        }

        Object with() {
            return nodes.get(step.get("with").asInt());
        }

        int n() {
            return step.get("n").asInt();
        }

        String store() {
            return step.hasNonNull("store") ? step.get("store").asText() : null;
        }

        <S extends StateStore> Materialized<String, Long, S> stored() {
            Materialized<String, Long, S> made = store() == null ? Materialized.with(Serdes.String(), Serdes.Long()) : Materialized.as(store());
            if (step.hasNonNull("history")) {
                made = (Materialized) Materialized.as(Stores.persistentVersionedKeyValueStore(store(), millis(step, "history")));
            }
            if (step.hasNonNull("caching")) {
                made = made.withCachingDisabled();
            }
            made = step.hasNonNull("retention") ? made.withRetention(millis(step, "retention")) : made;
            return made.withKeySerde(Serdes.String()).withValueSerde(Serdes.Long());
        }

        Materialized<Windowed<String>, Long, KeyValueStore<Bytes, byte[]>> storedWindows() {
            Serde<Windowed<String>> serde = windowed().sessions
                ? WindowedSerdes.sessionWindowedSerdeFrom(String.class)
                : WindowedSerdes.timeWindowedSerdeFrom(String.class, windowed().size);
            Materialized<Windowed<String>, Long, KeyValueStore<Bytes, byte[]>> made = Materialized.as(store());
            made = step.hasNonNull("caching") ? made.withCachingDisabled() : made;
            return made.withKeySerde(serde).withValueSerde(Serdes.Long());
        }

        void add() {
            String name = step.get("op").asText();
            switch (name) {
                case "stream": nodes.add(sourceStream()); break;
                case "global_store": nodes.add(globalStore()); break;
                case "process_windows": nodes.add(processWindows()); break;
                case "process_sessions": nodes.add(processSessions()); break;
                case "process_versions": nodes.add(processVersions()); break;
                case "process_values": nodes.add(processValues()); break;
                case "transform_values": nodes.add(transformValues()); break;
                case "look_up": nodes.add(stream().process(() -> new Looking(step.get("reads").asText()), step.get("reads").asText())); break;
                case "ask": nodes.add(stream().process(() -> new Asking((String) with()))); break;
                case "table": nodes.add(source()); break;
                case "global": nodes.add(globalTable()); break;
                case "to": to(); nodes.add(null); break;
                case "filter": nodes.add(stream().filter((k, v) -> holds(v, n()))); break;
                case "filter_not": nodes.add(stream().filterNot((k, v) -> holds(v, n()))); break;
                case "map_values": nodes.add(stream().mapValues(v -> plus(v, n()))); break;
                case "nullify": nodes.add(stream().mapValues(v -> v != null && v % 4 == n() ? null : v)); break;
                case "with_key": nodes.add(stream().mapValues((k, v) -> plus(v, k == null ? 7 : k.length()))); break;
                case "select_key": nodes.add(stream().selectKey((k, v) -> v == null ? null : "n" + v % (n() + 1))); break;
                case "map": nodes.add(stream().map((k, v) -> KeyValue.pair(letter(v), plus(v, n())))); break;
                case "flat_map_values": nodes.add(stream().flatMapValues(v -> Arrays.asList(v, plus(v, 1)))); break;
                case "flat_map": nodes.add(stream().flatMap((k, v) -> Arrays.asList(KeyValue.pair(k, v), KeyValue.pair("f", plus(v, n()))))); break;
                case "merge": nodes.add(stream().merge((KStream<String, Long>) with())); break;
                case "repartition": nodes.add(stream().repartition()); break;
                case "split": split(); break;
                case "process": nodes.add(process()); break;
                case "to_table": nodes.add(store() == null ? stream().toTable() : stream().toTable(stored())); break;
                case "aggregate": nodes.add(aggregate()); break;
                case "cogroup": nodes.add(cogroup()); break;
                case "stream_stream": nodes.add(joinStreams()); break;
                case "stream_table": nodes.add(lookUp()); break;
                case "stream_global": nodes.add(lookUpGlobally()); break;
                case "table_filter": nodes.add(store() == null ? table().filter((k, v) -> holds(v, n())) : table().filter((k, v) -> holds(v, n()), stored())); break;
                case "table_filter_not": nodes.add(store() == null ? table().filterNot((k, v) -> holds(v, n())) : table().filterNot((k, v) -> holds(v, n()), stored())); break;
                case "table_map_values": nodes.add(store() == null ? table().mapValues(v -> plus(v, n())) : table().mapValues(v -> plus(v, n()), stored())); break;
                case "table_nullify": nodes.add(store() == null ? table().mapValues(v -> v % 4 == n() ? null : v) : table().mapValues(v -> v % 4 == n() ? null : v, stored())); break;
                case "to_stream": nodes.add(table().toStream()); break;
                case "to_stream_keyed": nodes.add(table().toStream((k, v) -> k + or(v, 9) % 2)); break;
                case "table_aggregate": nodes.add(aggregateTable()); break;
                case "table_table": nodes.add(joinTables()); break;
                case "foreign_key": nodes.add(joinByForeignKey()); break;
                case "suppress": nodes.add(table().suppress(limit())); break;
                case "windowed_filter": nodes.add(of(store() == null ? rows("of").filter((k, v) -> holds(v, n())) : rows("of").filter((k, v) -> holds(v, n()), storedWindows()))); break;
                case "windowed_map_values": nodes.add(of(store() == null ? rows("of").mapValues(v -> plus(v, n())) : rows("of").mapValues(v -> plus(v, n()), storedWindows()))); break;
                case "windowed_limit": nodes.add(of(rows("of").suppress(limit()))); break;
                case "windowed_suppress": nodes.add(of(rows("of").suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())))); break;
                case "windowed_join": nodes.add(of(joinWindows())); break;
                case "windowed_to_stream": nodes.add(rows("of").toStream((k, v) -> k == null ? null : k.key() + k.window().start() % 2)); break;
                case "windowed_group": nodes.add(rows("of").groupBy((k, v) -> KeyValue.pair("w" + k.window().start() % 3, v), Grouped.with(Serdes.String(), Serdes.Long())).reduce(Long::sum, (a, b) -> a - b, stored())); break;
                default: throw new IllegalArgumentException(name);
            }
        }

        WindowedTable of(Object node) {
            return new WindowedTable(node, windowed().sessions, windowed().size);
        }

        KTable<String, Long> source() {
            String topic = step.get("topic").asText();
            Consumed<String, Long> consumed = consumed();
            return store() == null ? builder.table(topic, consumed) : builder.table(topic, consumed, stored());
        }

        KStream<String, Long> sourceStream() {
            List<String> topics = new ArrayList<>(List.of(step.get("topic").asText()));
            step.path("topics").forEach(each -> topics.add(each.asText()));
            return builder.stream(topics, consumed());
        }

        Consumed<String, Long> consumed() {
            Consumed<String, Long> consumed = Consumed.with(Serdes.String(), Serdes.Long());
            if (!step.hasNonNull("extractor")) {
                return consumed;
            }
            boolean skips = step.get("extractor").asText().equals("skip");
            long unit = step.get("unit").asLong();
            return consumed.withTimestampExtractor((record, partitionTime) -> {
                Long value = (Long) record.value();
                return value == null || value == 3 ? (skips ? -1 : partitionTime) : value * 10 * unit;
            });
        }

        String globalStore() {
            String name = store();
            builder.addGlobalStore(
                Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), Serdes.String(), Serdes.Long()).withLoggingDisabled(),
                step.get("topic").asText(), Consumed.with(Serdes.String(), Serdes.Long()), () -> new Doubling(name));
            return name;
        }

        String keyValueStore() {
            builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(store()), Serdes.String(), Serdes.Long()));
            return store();
        }

        KStream<String, Long> processWindows() {
            String name = store(), kind = step.get("kind").asText();
            long size = step.get("size").asLong();
            builder.addStateStore(Stores.windowStoreBuilder(step.get("memory").asBoolean()
                ? Stores.inMemoryWindowStore(name, millis(step, "retention"), Duration.ofMillis(size), false)
                : Stores.persistentWindowStore(name, millis(step, "retention"), Duration.ofMillis(size), false), Serdes.String(), Serdes.Long()));
            return stream().process(() -> new Windowing(name, kind, size), name);
        }

        KStream<String, Long> processSessions() {
            String name = store(), kind = step.get("kind").asText();
            long gap = step.get("gap").asLong();
            builder.addStateStore(Stores.sessionStoreBuilder(step.get("memory").asBoolean()
                ? Stores.inMemorySessionStore(name, millis(step, "retention"))
                : Stores.persistentSessionStore(name, millis(step, "retention")), Serdes.String(), Serdes.Long()));
            return stream().process(() -> new Sessioning(name, kind, gap), name);
        }

        KStream<String, Long> processVersions() {
            String name = store();
            builder.addStateStore(Stores.versionedKeyValueStoreBuilder(
                Stores.persistentVersionedKeyValueStore(name, millis(step, "history")), Serdes.String(), Serdes.Long()));
            return stream().process(() -> new Versioning(name, n()), name);
        }

        KStream<String, Long> processValues() {
            String name = keyValueStore();
            return stream().processValues(() -> new Fixing(name, n()), name);
        }

        KTable<String, Long> transformValues() {
            String name = keyValueStore();
            return step.hasNonNull("kept")
                ? table().transformValues(() -> new Numbering(name), Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(step.get("kept").asText()).withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()), name)
                : table().transformValues(() -> new Numbering(name), name);
        }

        GlobalKTable<String, Long> globalTable() {
            String topic = step.get("topic").asText();
            return store() == null ? builder.globalTable(topic) : builder.globalTable(topic, stored());
        }

        void to() {
            String topic = step.get("topic").asText();
            Object node = nodes.get(step.get("of").asInt());
            if (step.hasNonNull("topics")) {
                String odd = step.get("topics").get(0).asText(), even = step.get("topics").get(1).asText();
                KStream<String, Long> stream = node instanceof KStream ? (KStream<String, Long>) node : ((KTable<String, Long>) node).toStream();
                stream.to((k, v, context) -> v != null && v % 2 == 0 ? even : odd);
                outputs.put(odd, new StringDeserializer());
                outputs.put(even, new StringDeserializer());
            } else if (node instanceof KStream) {
                ((KStream<String, Long>) node).to(topic);
                outputs.put(topic, new StringDeserializer());
            } else if (node instanceof KTable) {
                ((KTable<String, Long>) node).toStream().to(topic);
                outputs.put(topic, new StringDeserializer());
            } else {
                WindowedTable rows = (WindowedTable) node;
                KStream<Windowed<String>, Long> stream = ((KTable<Windowed<String>, Long>) rows.node).toStream();
                Serde<Windowed<String>> serde = rows.sessions
                    ? WindowedSerdes.sessionWindowedSerdeFrom(String.class)
                    : WindowedSerdes.timeWindowedSerdeFrom(String.class, rows.size);
                stream.to(topic, Produced.with(serde, Serdes.Long()));
                outputs.put(topic, serde.deserializer());
            }
        }

        void split() {
            Map<String, KStream<String, Long>> branches = stream().split(Named.as(step.get("name").asText()))
                .branch((k, v) -> holds(v, n()), Branched.as("1")).defaultBranch(Branched.as("0"));
            nodes.add(branches.get(step.get("name").asText() + "1"));
            nodes.add(branches.get(step.get("name").asText() + "0"));
        }

        KStream<String, Long> process() {
            String name = store();
            String kind = step.get("kind").asText();
            builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), Serdes.String(), Serdes.Long()));
            return stream().process(() -> new Counting(name, kind, n()), name);
        }

        KGroupedStream<String, Long> grouped(KStream<String, Long> stream) {
            return step.hasNonNull("group")
                ? stream.groupBy((k, v) -> v == null ? null : "g" + v % (step.get("group").asInt() + 1))
                : stream.groupByKey();
        }

        Object aggregate() {
            KGroupedStream<String, Long> grouped = grouped(stream());
            String fold = step.get("fold").asText();
            if (!step.hasNonNull("windows")) {
                switch (fold) {
                    case "count": return store() == null ? grouped.count() : grouped.count(stored());
                    case "reduce": return grouped.reduce(RandomPrograms::reduced, stored());
                    default: return grouped.aggregate(() -> 0L, (k, v, total) -> folded(fold, v, total), stored());
                }
            }
            JsonNode windows = step.get("windows");
            if (windows.get("kind").asText().equals("session")) {
                SessionWindowedKStream<String, Long> cut = grouped.windowedBy(sessions(windows));
                if (step.get("emit").asBoolean()) {
                    cut = cut.emitStrategy(EmitStrategy.onWindowClose());
                }
                switch (fold) {
                    case "count": return new WindowedTable(store() == null && !step.hasNonNull("retention") ? cut.count() : cut.count(stored()), true, 0);
                    case "reduce": return new WindowedTable(cut.reduce(RandomPrograms::reduced, stored()), true, 0);
                    default: return new WindowedTable(cut.aggregate(() -> 0L, (k, v, total) -> folded(fold, v, total), (k, a, b) -> a + b, stored()), true, 0);
                }
            }
            TimeWindowedKStream<String, Long> cut = windows.get("kind").asText().equals("unlimited")
                ? grouped.windowedBy(unlimited(windows))
                : windows.get("kind").asText().equals("sliding")
                ? grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(millis(windows, "size"), millis(windows, "grace")))
                : grouped.windowedBy(timeWindows(windows));
            if (step.get("emit").asBoolean()) {
                cut = cut.emitStrategy(EmitStrategy.onWindowClose());
            }
            long size = windows.path("size").asLong(Long.MAX_VALUE); // of unlimited windows
            switch (fold) {
                case "count": return new WindowedTable(store() == null && !step.hasNonNull("retention") ? cut.count() : cut.count(stored()), false, size);
                case "reduce": return new WindowedTable(cut.reduce(RandomPrograms::reduced, stored()), false, size);
                default: return new WindowedTable(cut.aggregate(() -> 0L, (k, v, total) -> folded(fold, v, total), stored()), false, size);
            }
        }

        Object cogroup() {
            KGroupedStream<String, Long> other = ((KStream<String, Long>) with()).groupByKey();
            CogroupedKStream<String, Long> both = grouped(stream()).<Long>cogroup((k, v, total) -> folded("first", v, total))
                .cogroup(other, (k, v, total) -> folded("second", v, total));
            if (!step.hasNonNull("windows")) {
                return both.aggregate(() -> 0L, stored());
            }
            JsonNode windows = step.get("windows");
            switch (windows.get("kind").asText()) {
                case "session": return new WindowedTable(both.windowedBy(sessions(windows)).aggregate(() -> 0L, (k, a, b) -> a + b, stored()), true, 0);
                case "unlimited": return new WindowedTable(both.windowedBy(unlimited(windows)).aggregate(() -> 0L, stored()), false, Long.MAX_VALUE);
                case "sliding": return new WindowedTable(both.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(millis(windows, "size"), millis(windows, "grace"))).aggregate(() -> 0L, stored()), false, windows.get("size").asLong());
                default: return new WindowedTable(both.windowedBy(timeWindows(windows)).aggregate(() -> 0L, stored()), false, windows.get("size").asLong());
            }
        }

        KStream<String, Long> joinStreams() {
            KStream<String, Long> other = (KStream<String, Long>) with();
            JsonNode windows = step.get("windows");
            JoinWindows within = JoinWindows.ofTimeDifferenceAndGrace(millis(windows, "size"), millis(windows, "grace"));
            if (windows.hasNonNull("before")) {
                within = within.before(millis(windows, "before"));
            }
            if (windows.hasNonNull("after")) {
                within = within.after(millis(windows, "after"));
            }
            switch (step.get("kind").asText()) {
                case "inner": return stream().join(other, joiner(), within);
                case "left": return stream().leftJoin(other, joiner(), within);
                default: return stream().outerJoin(other, joiner(), within);
            }
        }

        KStream<String, Long> lookUp() {
            KTable<String, Long> rows = (KTable<String, Long>) with();
            Joined<String, Long, Long> joined = Joined.with(Serdes.String(), Serdes.Long(), Serdes.Long());
            if (step.hasNonNull("grace")) {
                joined = joined.withGracePeriod(millis(step, "grace"));
            }
            return step.get("kind").asText().equals("inner") ? stream().join(rows, joiner(), joined) : stream().leftJoin(rows, joiner(), joined);
        }

        ValueJoinerWithKey<String, Long, Long, Long> joiner() {
            boolean keyed = step.path("keyed").asBoolean();
            return (key, one, two) -> both(one, two) + (keyed ? key == null ? 7 : key.length() : 0);
        }

        KStream<String, Long> lookUpGlobally() {
            GlobalKTable<String, Long> rows = (GlobalKTable<String, Long>) with();
            return step.get("kind").asText().equals("inner")
                ? stream().join(rows, (k, v) -> letter(v), joiner())
                : stream().leftJoin(rows, (k, v) -> letter(v), joiner());
        }

        KTable<String, Long> aggregateTable() {
            KGroupedTable<String, Long> grouped = table().groupBy((k, v) -> KeyValue.pair("t" + v % (n() + 1), v), Grouped.with(Serdes.String(), Serdes.Long()));
            switch (step.get("fold").asText()) {
                case "count": return store() == null ? grouped.count() : grouped.count(stored());
                case "reduce": return grouped.reduce(Long::sum, (a, b) -> a - b, stored());
                default: return grouped.aggregate(() -> 0L, (k, v, total) -> total * 2 + v, (k, v, total) -> total - 3 * v, stored());
            }
        }

        KTable<String, Long> joinTables() {
            KTable<String, Long> other = (KTable<String, Long>) with();
            String kind = step.get("kind").asText();
            if (store() == null) {
                return kind.equals("inner") ? table().join(other, RandomPrograms::both)
                    : kind.equals("left") ? table().leftJoin(other, RandomPrograms::both) : table().outerJoin(other, RandomPrograms::both);
            }
            return kind.equals("inner") ? table().join(other, RandomPrograms::both, stored())
                : kind.equals("left") ? table().leftJoin(other, RandomPrograms::both, stored()) : table().outerJoin(other, RandomPrograms::both, stored());
        }

        KTable<Windowed<String>, Long> joinWindows() {
            KTable<Windowed<String>, Long> one = rows("of"), other = rows("with");
            String kind = step.get("kind").asText();
            if (store() == null) {
                return kind.equals("inner") ? one.join(other, RandomPrograms::both)
                    : kind.equals("left") ? one.leftJoin(other, RandomPrograms::both) : one.outerJoin(other, RandomPrograms::both);
            }
            return kind.equals("inner") ? one.join(other, RandomPrograms::both, storedWindows())
                : kind.equals("left") ? one.leftJoin(other, RandomPrograms::both, storedWindows()) : one.outerJoin(other, RandomPrograms::both, storedWindows());
        }

        KTable<String, Long> joinByForeignKey() {
            KTable<String, Long> other = (KTable<String, Long>) with();
            return step.get("kind").asText().equals("inner")
                ? table().join(other, this::foreignKey, RandomPrograms::both, stored())
                : table().leftJoin(other, this::foreignKey, RandomPrograms::both, stored());
        }

        String foreignKey(String key, Long value) {
            return letter(step.path("keyed").asBoolean() ? plus(value, key.length()) : value);
        }

        <K> Suppressed<K> limit() {
            Duration limit = millis(step, "limit");
            return step.hasNonNull("records")
                ? Suppressed.untilTimeLimit(limit, Suppressed.BufferConfig.maxRecords(step.get("records").asLong()).emitEarlyWhenFull())
                : Suppressed.untilTimeLimit(limit, Suppressed.BufferConfig.unbounded());
        }
    }

    static Duration millis(JsonNode node, String field) {
        return Duration.ofMillis(node.get(field).asLong());
    }

    static TimeWindows timeWindows(JsonNode windows) {
        return TimeWindows.ofSizeAndGrace(millis(windows, "size"), millis(windows, "grace")).advanceBy(millis(windows, "advance"));
    }

    static UnlimitedWindows unlimited(JsonNode windows) {
        return UnlimitedWindows.of().startOn(Instant.ofEpochMilli(windows.get("start").asLong()));
    }

    static SessionWindows sessions(JsonNode windows) {
        return SessionWindows.ofInactivityGapAndGrace(millis(windows, "size"), millis(windows, "grace"));
    }

    static Long reduced(Long one, Long two) {
        return (one * 2 + two) % 1000;
    }

    static Long folded(String fold, Long value, Long total) {
        switch (fold) {
            case "failing":
                if (value != null && value % 5 == 4) {
                    throw new IllegalStateException(value + " is not to be added");
                }
                return total + or(value, 0);
            case "sum": return total + or(value, 0); // a session's aggregator is called without a value, too
            case "column sum": return total + or(value, 0);
            case "first": return total + or(value, 0);
            case "second": return total * 2 + or(value, 0);
            default: return or(value, 1) % 5 == 0 ? null : or(total, 50) + or(value, 1);
        }
    }

    static Long both(Long one, Long two) {
        return or(one, 100) + 3 * or(two, 100);
    }

    /** Counts a key's records in a store, and says so; or at punctuations. */
    static class Counting implements Processor<String, Long, String, Long> {
        final String store;
        final String kind;
        final int number;
        KeyValueStore<String, Long> counts;
        ProcessorContext<String, Long> context;

        Counting(String store, String kind, int number) {
            this.store = store;
            this.kind = kind;
            this.number = number;
        }

        @Override
        public void init(ProcessorContext<String, Long> context) {
            this.context = context;
            counts = context.getStateStore(store);
            if (kind.equals("stream time")) {
                context.schedule(Duration.ofMillis(10 * (number + 1)), PunctuationType.STREAM_TIME, this::tick);
            } else if (kind.equals("wall clock")) {
                context.schedule(Duration.ofMillis(10 * (number + 1)), PunctuationType.WALL_CLOCK_TIME, this::tick);
            }
        }

        void tick(long timestamp) {
            try (KeyValueIterator<String, Long> all = counts.all()) {
                while (all.hasNext()) {
                    KeyValue<String, Long> each = all.next();
                    context.forward(new Record<>(each.key, each.value, timestamp));
                }
            }
        }

        @Override
        public void process(Record<String, Long> record) {
            if (record.key() == null) {
                return;
            }
            if (record.value() == null) {
                counts.delete(record.key());
                return;
            }
            long now = or(counts.get(record.key()), 0) + record.value();
            counts.put(record.key(), now);
            if (kind.equals("failing") && now % 3 == 0) {
                throw new IllegalStateException(now + " can be divided by three");
            }
            if (kind.equals("each") || kind.equals("failing")) {
                context.forward(record.withValue(now));
                if (now % 2 == number % 2) {
                    context.forward(record.withValue(-now).withTimestamp(record.timestamp() + number));
                }
            }
        }
    }

    /** A processor with a store of some kind, by its name. */
    abstract static class OfStore<S extends StateStore, K, V> extends ContextualProcessor<String, Long, K, V> {
        final String store;
        S kept;

        OfStore(String store) {
            this.store = store;
        }

        @Override
        public void init(ProcessorContext<K, V> context) {
            super.init(context);
            kept = context.getStateStore(store);
        }
    }

    /** Adds values up in windows of a store of its own, and forwards the windows that it finds around the record. */
    static class Windowing extends OfStore<WindowStore<String, Long>, String, Long> {
        final String kind;
        final long size;

        Windowing(String store, String kind, long size) {
            super(store);
            this.kind = kind;
            this.size = size;
        }

        @Override
        public void process(Record<String, Long> record) {
            if (record.key() == null) {
                return;
            }
            long time = record.timestamp(), start = time - time % size;
            kept.put(record.key(), record.value() == null ? null : Long.valueOf(or(kept.fetch(record.key(), start), 0) + record.value()), start);
            Instant first = Instant.ofEpochMilli(time - 3 * size), last = Instant.ofEpochMilli(time + size);
            if (kind.equals("fetch") || kind.equals("backward")) {
                try (WindowStoreIterator<Long> found = kind.equals("fetch") ? kept.fetch(record.key(), first, last) : kept.backwardFetch(record.key(), first, last)) {
                    while (found.hasNext()) {
                        KeyValue<Long, Long> each = found.next();
                        tell(record, record.key(), each.key, each.value);
                    }
                }
                return;
            }
            try (KeyValueIterator<Windowed<String>, Long> found = kind.equals("range") ? kept.fetch("a", "b", first, last)
                    : kind.equals("all") ? kept.fetchAll(first, last) : kept.all()) {
                while (found.hasNext()) {
                    KeyValue<Windowed<String>, Long> each = found.next();
                    tell(record, each.key.key(), each.key.window().start(), each.value);
                }
            }
        }

        void tell(Record<String, Long> record, String key, long begin, long value) {
            context().forward(record.withKey(key).withValue(value * 1000 + Math.floorMod(Math.floorDiv(begin, size), 1000)));
        }
    }

    /** Adds values up in sessions of a store of its own; a record without a value asks for those around it. */
    static class Sessioning extends OfStore<SessionStore<String, Long>, String, Long> {
        final String kind;
        final long gap;

        Sessioning(String store, String kind, long gap) {
            super(store);
            this.kind = kind;
            this.gap = gap;
        }

        @Override
        public void process(Record<String, Long> record) {
            if (record.key() == null) {
                return;
            }
            if (record.value() == null) {
                tell(record);
                return;
            }
            long start = record.timestamp(), end = start, value = record.value();
            List<KeyValue<Windowed<String>, Long>> near = new ArrayList<>();
            try (KeyValueIterator<Windowed<String>, Long> found = kept.findSessions(record.key(), start - gap, end + gap)) {
                found.forEachRemaining(near::add);
            }
            for (KeyValue<Windowed<String>, Long> each : near) {
                kept.remove(each.key);
                start = Math.min(start, each.key.window().start());
                end = Math.max(end, each.key.window().end());
                value += each.value;
            }
            kept.put(new Windowed<>(record.key(), new org.apache.kafka.streams.kstream.internals.SessionWindow(start, end)), value);
            if (kind.equals("each")) {
                context().forward(record.withValue(value * 1000 + end - start));
            } else {
                tell(record);
            }
        }

        void tell(Record<String, Long> record) {
            try (KeyValueIterator<Windowed<String>, Long> found = kind.equals("range")
                    ? kept.findSessions("a", "b", record.timestamp() - gap, record.timestamp() + gap) : kept.fetch(record.key())) {
                while (found.hasNext()) {
                    KeyValue<Windowed<String>, Long> each = found.next();
                    long length = each.key.window().end() - each.key.window().start();
                    context().forward(record.withKey(each.key.key()).withValue(each.value * 1000 + length));
                }
            }
        }
    }

    /** Keeps versions of a key's value, and forwards until when each holds, and what held before. */
    static class Versioning extends OfStore<VersionedKeyValueStore<String, Long>, String, Long> {
        final int number;

        Versioning(String store, int number) {
            super(store);
            this.number = number;
        }

        @Override
        public void process(Record<String, Long> record) {
            if (record.key() == null) {
                return;
            }
            if (record.value() == null && number % 2 == 1) {
                VersionedRecord<Long> deleted = kept.delete(record.key(), record.timestamp());
                context().forward(record.withValue(deleted == null ? null : deleted.value()));
                return;
            }
            context().forward(record.withValue(Math.max(kept.put(record.key(), record.value(), record.timestamp()), -2)));
            tell(record, kept.get(record.key()));
            tell(record, kept.get(record.key(), record.timestamp() - 5 * (number + 1)));
        }

        void tell(Record<String, Long> record, VersionedRecord<Long> found) {
            if (found != null) {
                context().forward(record.withValue(found.value()).withTimestamp(found.timestamp()));
            }
        }
    }

    /** Numbers a key's values, and forwards some of them twice. */
    static class Fixing extends ContextualFixedKeyProcessor<String, Long, Long> {
        final String store;
        final int number;
        KeyValueStore<String, Long> counts;

        Fixing(String store, int number) {
            this.store = store;
            this.number = number;
        }

        @Override
        public void init(FixedKeyProcessorContext<String, Long> context) {
            super.init(context);
            counts = context.getStateStore(store);
        }

        @Override
        public void process(FixedKeyRecord<String, Long> record) {
            String key = record.key() == null ? "none" : record.key();
            long count = or(counts.get(key), 0) + 1;
            counts.put(key, count);
            context().forward(record.withValue(or(record.value(), 0) * 10 + count));
            if (count % 2 == number % 2) {
                context().forward(record.<Long>withValue(null).withTimestamp(record.timestamp() + number));
            }
        }
    }

    /** Numbers the updates of a row; what it is called for shows in the numbers. */
    static class Numbering implements ValueTransformerWithKey<String, Long, Long> {
        final String store;
        KeyValueStore<String, Long> counts;

        Numbering(String store) {
            this.store = store;
        }

        @Override
        public void init(org.apache.kafka.streams.processor.ProcessorContext context) {
            counts = context.getStateStore(store);
        }

        @Override
        public Long transform(String key, Long value) {
            long count = or(counts.get(key), 0) + 1;
            counts.put(key, count);
            return value == null ? null : value * 10 + count;
        }

        @Override
        public void close() {
        }
    }

    /** Forwards what a table's store has for each record's key, or how many rows it has. */
    static class Looking extends OfStore<TimestampedKeyValueStore<String, Long>, String, Long> {
        Looking(String store) {
            super(store);
        }

        @Override
        public void process(Record<String, Long> record) {
            ValueAndTimestamp<Long> found = record.key() == null ? null : kept.get(record.key());
            if (found != null) {
                context().forward(record.withValue(found.value()).withTimestamp(found.timestamp()));
                return;
            }
            long count = 0;
            try (KeyValueIterator<String, ValueAndTimestamp<Long>> all = kept.all()) {
                for (; all.hasNext(); all.next()) {
                    count++;
                }
            }
            context().forward(record.withValue(count));
        }
    }

    /** Fills a global store with twice the values of its topic. */
    static class Doubling extends OfStore<KeyValueStore<String, Long>, Void, Void> {
        Doubling(String store) {
            super(store);
        }

        @Override
        public void process(Record<String, Long> record) {
            if (record.key() != null) {
                kept.put(record.key(), record.value() == null ? null : record.value() * 2);
            }
        }
    }

    /** Forwards what a global store has for each record's letter. */
    static class Asking extends OfStore<KeyValueStore<String, Long>, String, Long> {
        Asking(String store) {
            super(store);
        }

        @Override
        public void process(Record<String, Long> record) {
            String letter = letter(record.value());
            context().forward(record.withValue(letter == null ? null : kept.get(letter)));
        }
    }
}
