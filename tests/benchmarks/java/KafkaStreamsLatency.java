import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/** The programs of `make bench` whose latency is measured, in Kafka Streams; they run until the process is ended. */
public final class KafkaStreamsLatency {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) {
        String program = arguments[0], servers = arguments[1], folder = arguments[2];
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "latency-of-kafka-streams");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put("auto.offset.reset", "earliest");
        // Each record leaves at once, as in the pipelines beside this one.
        settings.put("producer.linger.ms", 0);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, ObjectNode> orders = builder.<String, String>stream("orders").mapValues(KafkaStreamsLatency::read);
        if (program.equals("count")) {
            orders.mapValues(ObjectNode::toString).groupByKey().count(Materialized.as("counts"))
                .toStream().to("out", Produced.with(Serdes.String(), Serdes.Long()));
        } else {
            orders.filter((key, order) -> order.get("amount").asInt() > 500).mapValues(KafkaStreamsLatency::twice).to("out");
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    private static ObjectNode read(String text) {
        try {
            return (ObjectNode) JSON.readTree(text);
        } catch (Exception wrong) {
            throw new IllegalArgumentException(wrong);
        }
    }

    private static String twice(ObjectNode order) {
        return JSON.createObjectNode().put("user", order.get("user").asText()).put("twice", 2 * order.get("amount").asInt()).toString();
    }
}
