import java.util.HexFormat;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.SessionWindowedSerializer;
import org.apache.kafka.streams.kstream.TimeWindowedSerializer;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.kstream.internals.TimeWindow;

/**
 * Writes windowed keys with the serdes of Kafka Streams; tests/unit/test_serdes_java.py knows them by name.
 *
 * Record: java -cp "<kafka-streams.jar>:<kafka-clients.jar>:<slf4j-api.jar>" RecordWindowedSerdes.java > windowed.json
 */
public class RecordWindowedSerdes {
    static String hex(byte[] data) {
        return "\"" + HexFormat.of().formatHex(data) + "\"";
    }

    public static void main(String[] arguments) {
        var text = new TimeWindowedSerializer<>(Serdes.String().serializer());
        var number = new TimeWindowedSerializer<>(Serdes.Long().serializer());
        var session = new SessionWindowedSerializer<>(Serdes.String().serializer());
        byte[] early = text.serialize("topic", new Windowed<>("KO", new TimeWindow(1000, 6000)));
        byte[] late = number.serialize("topic", new Windowed<>(-1L, new TimeWindow(1704067200000L, 1704067205000L)));
        byte[] visit = session.serialize("topic", new Windowed<>("KO", new SessionWindow(1000, 9000)));
        System.out.println("{\n  \"time-windowed-string\": " + hex(early) + ",\n  \"time-windowed-long\": " + hex(late)
            + ",\n  \"session-windowed-string\": " + hex(visit) + "\n}");
    }
}
