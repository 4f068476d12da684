import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * The programs of `make bench` in Kafka Streams.
 *
 * <p>`follow PROGRAM SERVERS FOLDER` runs until the process is ended, and sends each update on at once.
 * `time PROGRAM SERVERS FOLDER RECORDS ROUNDS CACHE` runs a program over topics that are full, ROUNDS times and once
 * before, and prints for each the seconds it took and those of processor time; CACHE is in bytes, or "default".
 */
public final class KafkaStreamsPrograms {
    private static final ObjectMapper JSON = new ObjectMapper();

    public record Order(String user, int amount) {}

    public record Twice(String user, int twice) {}

    public record Named(int amount, String name) {}

    public record Trade(String symbol, double price, int size) {}

    public record Statistics(long count, double minPrice, double sumPrice) {
        Statistics with(Trade trade) {
            return new Statistics(count + 1, Math.min(minPrice, trade.price), sumPrice + trade.price);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        String program = arguments[1];
        Properties settings = settings(arguments[2], arguments[3]);
        if (arguments[0].equals("follow")) {
            settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
            settings.put("producer.linger.ms", 0);
            KafkaStreams streams = new KafkaStreams(topology(program), settings);
            Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
            streams.start();
            return;
        }
        if (!arguments[6].equals("default")) {
            settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, Long.parseLong(arguments[6]));
        }
        for (int round = 0; round <= Integer.parseInt(arguments[5]); round++) {
            settings.put(StreamsConfig.APPLICATION_ID_CONFIG, freshName());
            time(topology(program), settings, Long.parseLong(arguments[4]));
        }
    }

    /** An id that no earlier run has had: it knows no offsets, and its group waits for nobody who has left. */
    private static String freshName() {
        return "kafka-streams-" + System.currentTimeMillis();
    }

    /** Two threads; all else is Kafka's default. */
    private static Properties settings(String servers, String folder) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, freshName());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put("auto.offset.reset", "earliest");
        return settings;
    }

    /** Run from start() until all records are processed, and what caches and producers hold is written. */
    private static void time(Topology topology, Properties settings, long records) throws InterruptedException {
        var machine = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        KafkaStreams streams = new KafkaStreams(topology, settings);
        long began = System.nanoTime(), busy = machine.getProcessCpuTime();
        streams.start();
        while (processed(streams) < records) {
            Thread.sleep(5);
        }
        streams.close();
        System.out.println((System.nanoTime() - began) / 1e9 + " " + (machine.getProcessCpuTime() - busy) / 1e9);
        streams.cleanUp();
    }

    private static double processed(KafkaStreams streams) {
        return streams.metrics().values().stream()
            .filter(metric -> metric.metricName().group().equals("stream-thread-metrics"))
            .filter(metric -> metric.metricName().name().equals("process-total"))
            .mapToDouble(metric -> (Double) metric.metricValue())
            .sum();
    }

    private static Topology topology(String program) {
        StreamsBuilder builder = new StreamsBuilder();
        switch (program) {
            case "filter_and_map" -> orders(builder, "orders").filter((user, order) -> order.amount > 500)
                .mapValues(order -> new Twice(order.user, 2 * order.amount)).to("out", with(json(Twice.class)));
            case "count" -> orders(builder, "orders").groupByKey().count(Materialized.as("counts"))
                .toStream().to("out", with(Serdes.Long()));
            case "windowed_count" -> orders(builder, "orders").groupByKey()
                .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(5))).count(Materialized.as("counts"))
                .toStream((windowed, count) -> windowed.key()).to("out", with(Serdes.Long()));
            case "hopping" -> hopping(builder);
            case "stream_stream" -> orders(builder, "orders").join(orders(builder, "payments"),
                (order, payment) -> order.amount + payment.amount,
                JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(100)),
                StreamJoined.with(Serdes.String(), json(Order.class), json(Order.class))).to("out", with(Serdes.Integer()));
            case "stream_table" -> {
                KTable<String, String> users = builder.table("users", Consumed.with(Serdes.String(), Serdes.String()));
                orders(builder, "orders").join(users, (order, name) -> new Named(order.amount, name),
                    Joined.with(Serdes.String(), json(Order.class), Serdes.String())).to("out", with(json(Named.class)));
            }
            case "session" -> sessions(builder).toStream()
                .to("out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), Serdes.Long()));
            case "visits" -> sessions(builder).toStream((windowed, count) -> windowed.key())
                .to("out", with(Serdes.Long()));
            case "reducer" -> orders(builder, "orders").mapValues(order -> (long) order.amount)
                .groupByKey(Grouped.with(Serdes.String(), Serdes.Long()))
                .reduce(Long::sum, Materialized.as("totals")).toStream().to("out", with(Serdes.Long()));
            case "processor" -> {
                builder.addStateStore(Stores.keyValueStoreBuilder(
                    Stores.persistentKeyValueStore("totals"), Serdes.String(), Serdes.Long()));
                orders(builder, "orders").processValues(RunningTotal::new, "totals").to("out", with(Serdes.Long()));
            }
            default -> throw new IllegalArgumentException("There is no program '" + program + "' here.");
        }
        return builder.build();
    }

    private static void hopping(StreamsBuilder builder) {
        builder.stream("trades", Consumed.with(Serdes.String(), json(Trade.class)))
            .filter((symbol, trade) -> trade.price > 0)
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(5)).advanceBy(Duration.ofSeconds(1)))
            .aggregate(() -> new Statistics(0, Double.MAX_VALUE, 0), (symbol, trade, statistics) -> statistics.with(trade),
                Materialized.with(Serdes.String(), json(Statistics.class)))
            .mapValues(statistics -> statistics.sumPrice / statistics.count)
            .toStream()
            .to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 5_000L), Serdes.Double()));
    }

    private static KTable<Windowed<String>, Long> sessions(StreamsBuilder builder) {
        return orders(builder, "orders").groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofMillis(200))).count(Materialized.as("sessions"));
    }

    private static final class RunningTotal extends ContextualFixedKeyProcessor<String, Order, Long> {
        private KeyValueStore<String, Long> totals;

        @Override
        public void init(FixedKeyProcessorContext<String, Long> context) {
            super.init(context);
            totals = context.getStateStore("totals");
        }

        @Override
        public void process(FixedKeyRecord<String, Order> record) {
            Long before = totals.get(record.key());
            long total = (before == null ? 0 : before) + record.value().amount;
            totals.put(record.key(), total);
            context().forward(record.withValue(total));
        }
    }

    private static KStream<String, Order> orders(StreamsBuilder builder, String topic) {
        return builder.stream(topic, Consumed.with(Serdes.String(), json(Order.class)));
    }

    private static <V> Produced<String, V> with(Serde<V> value) {
        return Produced.with(Serdes.String(), value);
    }

    private static <T> Serde<T> json(Class<T> type) {
        return Serdes.serdeFrom((topic, value) -> value == null ? null : written(value), (topic, bytes) -> bytes == null ? null : read(bytes, type));
    }

    private static byte[] written(Object value) {
        try {
            return JSON.writeValueAsBytes(value);
        } catch (IOException wrong) {
            throw new UncheckedIOException(wrong);
        }
    }

    private static <T> T read(byte[] bytes, Class<T> type) {
        try {
            return JSON.readValue(bytes, type);
        } catch (IOException wrong) {
            throw new UncheckedIOException(wrong);
        }
    }
}
