import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Scanner;
import java.util.UUID;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;

/**
 * Writes known values with the serdes of Kafka's Java client, or reads them back. tests/unit/test_serdes_java.py knows the
 * same values by the same names.
 *
 * Record: java -cp "<kafka-clients.jar>:<slf4j-api.jar>" RecordSerdes.java > serdes.json
 * Read:   java -cp ... RecordSerdes.java read, with "name hex" lines on standard input; says "name same" or what it read.
 */
public class RecordSerdes {
    record Case<T>(Serde<T> serde, T value) {
        String write() {
            byte[] data = serde.serializer().serialize("topic", value);
            return data == null ? null : HexFormat.of().formatHex(data);
        }

        String read(byte[] data) {
            T found = serde.deserializer().deserialize("topic", data);
            return Objects.deepEquals(found, value) ? "same" : "differs: " + found;
        }
    }

    static final Map<String, Case<?>> CASES = new LinkedHashMap<>();

    static <T> void add(String name, Serde<T> serde, T value) {
        CASES.put(name, new Case<>(serde, value));
    }

    static <T> Serde<List<T>> listOf(Serde<T> inner) {
        return Serdes.ListSerde(ArrayList.class, inner);
    }

    static void fill() {
        add("string", Serdes.String(), "Käse 🧀");
        add("string-empty", Serdes.String(), "");
        add("long", Serdes.Long(), 258L);
        add("long-least", Serdes.Long(), Long.MIN_VALUE);
        add("integer", Serdes.Integer(), -2);
        add("integer-most", Serdes.Integer(), Integer.MAX_VALUE);
        add("short", Serdes.Short(), (short) -513);
        add("double", Serdes.Double(), 0.1);
        add("double-minus-zero", Serdes.Double(), -0.0);
        add("double-infinite", Serdes.Double(), Double.NEGATIVE_INFINITY);
        add("double-nan", Serdes.Double(), Double.NaN);
        add("float", Serdes.Float(), 0.1f);
        add("float-most", Serdes.Float(), Float.MAX_VALUE);
        add("float-nan", Serdes.Float(), Float.NaN);
        add("boolean-true", Serdes.Boolean(), true);
        add("boolean-false", Serdes.Boolean(), false);
        add("byte-array", Serdes.ByteArray(), new byte[] {0, -1, 7});
        add("byte-array-empty", Serdes.ByteArray(), new byte[0]);
        add("bytes", Serdes.Bytes(), Bytes.wrap(new byte[] {0, -1, 7}));
        add("byte-buffer", Serdes.ByteBuffer(), ByteBuffer.wrap(new byte[] {0, -1, 7}));
        add("uuid", Serdes.UUID(), UUID.fromString("123E4567-e89b-12d3-a456-426614174000"));
        add("void", Serdes.Void(), null);
        add("list-long", listOf(Serdes.Long()), Arrays.asList(1L, null, -1L, null));
        add("list-long-empty", listOf(Serdes.Long()), new ArrayList<>());
        add("list-integer", listOf(Serdes.Integer()), Arrays.asList(7));
        add("list-short", listOf(Serdes.Short()), Arrays.asList((short) 1, (short) -1));
        add("list-float", listOf(Serdes.Float()), Arrays.asList(1.5f, null));
        add("list-double", listOf(Serdes.Double()), Arrays.asList(0.1));
        add("list-uuid", listOf(Serdes.UUID()), Arrays.asList(new UUID(1, 2), null));
        add("list-string", listOf(Serdes.String()), Arrays.asList("a", null, "", "Käse"));
        add("list-string-empty", listOf(Serdes.String()), new ArrayList<>());
        add("list-boolean", listOf(Serdes.Boolean()), Arrays.asList(true, null));
        add("list-list", listOf(listOf(Serdes.Integer())), Arrays.asList(Arrays.asList(1, 2), new ArrayList<>()));
    }

    public static void main(String[] arguments) {
        fill();
        if (arguments.length > 0 && arguments[0].equals("read")) {
            new Scanner(System.in, StandardCharsets.UTF_8).useDelimiter("\n").forEachRemaining(RecordSerdes::read);
            return;
        }
        List<String> lines = new ArrayList<>();
        CASES.forEach((name, each) -> {
            String hex = each.write();
            lines.add("  \"" + name + "\": " + (hex == null ? "null" : "\"" + hex + "\""));
        });
        System.out.println("{\n" + String.join(",\n", lines) + "\n}");
    }

    static void read(String line) {
        String[] parts = line.strip().split(" ", 2);
        byte[] data = parts.length < 2 ? new byte[0] : HexFormat.of().parseHex(parts[1]);
        try {
            System.out.println(parts[0] + " " + CASES.get(parts[0]).read(data));
        } catch (RuntimeException failure) {
            System.out.println(parts[0] + " failed: " + failure);
        }
    }
}
