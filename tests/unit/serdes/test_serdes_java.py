"""The bytes are those of Kafka's Java serdes: as recorded, and by Java itself where a compiler is there."""

import os
import subprocess

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit.environment.jars import broker_jars
from streamskit.environment.java import find_java
from tests.unit.serdes.serdes_cases import CASES, JAVA, recorded, same

RECORDED = recorded()


def test_every_recorded_case_is_known_here_and_the_other_way_round() -> None:
    assert CASES.keys() == RECORDED.keys()


@pytest.mark.parametrize("name", CASES)
def test_python_writes_what_java_wrote_and_reads_it(name: str) -> None:
    serde, value = CASES[name]
    assert serde.serialize(value) == RECORDED[name]
    assert same(serde.deserialize(RECORDED[name]), value)


@pytest.mark.spark
def test_spark_reads_what_java_wrote_and_writes_it_again(spark: SparkSession) -> None:
    names = list(CASES)
    rows = spark.createDataFrame(
        [tuple(None if RECORDED[name] is None else bytearray(RECORDED[name] or b"") for name in names)],
        ", ".join(f"`{name}` binary" for name in names),
    )
    read = rows.select([CASES[name][0].from_bytes(F.col(f"`{name}`")).alias(name) for name in names])
    written = read.select([CASES[name][0].to_bytes(F.col(f"`{name}`")).alias(name) for name in names])
    assert {
        name: None if data is None else bytes(data) for name, data in written.collect()[0].asDict().items()
    } == RECORDED


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("double", "float"))])
@pytest.mark.spark
def test_spark_reads_the_number_that_java_wrote(spark: SparkSession, name: str) -> None:
    serde, value = CASES[name]
    rows = spark.createDataFrame([(bytearray(RECORDED[name] or b""),)], "data binary")
    assert same(rows.select(serde.from_bytes(F.col("data")).alias("v")).collect()[0].v, value)


def test_java_reads_what_streamskit_writes() -> None:
    java = find_java().executable
    modules = subprocess.run([str(java), "--list-modules"], capture_output=True, text=True, check=True).stdout
    if "jdk.compiler" not in modules:
        pytest.skip(f"The Java at {java} has no compiler: name a JDK in STREAMSKIT_JAVA_HOME to run this.")
    # The windowed serdes are in a jar of their own, and void has no bytes.
    written = {name: serde.serialize(value) for name, (serde, value) in CASES.items() if "windowed" not in name}
    lines = [f"{name} {data.hex()}" for name, data in written.items() if data is not None]
    jars = [jar for jar in broker_jars() if jar.name.startswith(("kafka-clients", "slf4j-api"))]
    command = [str(java), "-cp", os.pathsep.join(map(str, jars)), "RecordSerdes.java", "read"]
    said = subprocess.run(
        command, cwd=JAVA, input="\n".join(lines), capture_output=True, text=True, encoding="utf-8", check=True
    ).stdout
    assert said.splitlines() == [f"{name} same" for name, data in written.items() if data is not None]
