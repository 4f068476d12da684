"""Records what Kafka Streams says of the Java programs that the lessons show beside their Python ones.

python -m tests.java.record_twins FOLDER, where the folder has the jars kafka-streams, kafka-streams-test-utils,
kafka-clients, rocksdbjni, slf4j-api and Jackson's three. It compiles each program, gives it to Java's test driver,
which wires its stores, and writes what its `describe()` prints, with the program's fingerprint, to `descriptions.json`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from streamskit.course.lessons.java_twins import DESCRIPTIONS, TWINS, fingerprint
from streamskit.environment.java import find_java

HEADER = """
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.*;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.*;

public class Twins {
    static final ObjectMapper MAPPER = new ObjectMapper();

    /** A serde that reads and writes JSON, as the programs' readers would have one. */
    static <T> Serde<T> serde(Class<T> type) {
        return Serdes.serdeFrom(
            (topic, value) -> {
                try {
                    return value == null ? null : MAPPER.writeValueAsBytes(value);
                } catch (java.io.IOException error) {
                    throw new java.io.UncheckedIOException(error);
                }
            },
            (topic, data) -> {
                try {
                    return data == null ? null : MAPPER.readValue(data, type);
                } catch (java.io.IOException error) {
                    throw new java.io.UncheckedIOException(error);
                }
            });
    }

    static void told(String name, Topology topology) throws Exception {
        new TopologyTestDriver(topology).close();
        System.out.println(MAPPER.writeValueAsString(new String[] {name, topology.describe().toString()}));
    }
"""
METHOD = """
    static Topology %s() {
%s
        return topology;
    }
"""
MAIN = """
    public static void main(String[] arguments) throws Exception {
%s
    }
}
"""


def program(twins: dict[str, str]) -> str:
    """Return one Java class with a method for each program."""
    methods = {name: name.replace("-", "_") for name in twins}
    bodies = "".join(METHOD % (methods[name], source) for name, source in twins.items())
    return HEADER + bodies + MAIN % "\n".join(f'told("{name}", {method}());' for name, method in methods.items())


def described(twins: dict[str, str], jars: Path) -> dict[str, str]:
    """Return what Kafka Streams' `describe()` says of each program."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "Twins.java"
        file.write_text(program(twins))
        java = [str(find_java().executable), "-cp", os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))]
        said = subprocess.run([*java, str(file)], capture_output=True, text=True, encoding="utf-8", check=False)
    if said.returncode:
        raise SystemExit(said.stderr)
    return dict(json.loads(line) for line in said.stdout.splitlines() if line.startswith("["))


def main(jars: Path) -> None:
    twins = {path.stem: path.read_text() for path in sorted(TWINS.glob("*.java"))}
    (version,) = (path.stem.removeprefix("kafka-streams-") for path in jars.glob("kafka-streams-[0-9]*.jar"))
    found = described(twins, jars)
    rows = {name: {"java": fingerprint(source), "describe": found[name]} for name, source in twins.items()}
    DESCRIPTIONS.write_text(json.dumps({"kafka_streams": version, "programs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
