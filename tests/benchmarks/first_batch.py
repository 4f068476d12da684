"""From the start of a process to the end of its first micro-batch, with streamskit or by hand: prints JSON."""

import json
import os
import sys
import tempfile
import time

BEGAN = time.perf_counter()


def with_streamskit(servers: str) -> dict[str, float]:
    """Run a filter and a map over the topic "orders" with streamskit."""
    from pyspark.sql import functions as F

    from streamskit import KafkaStreams, Serdes, StreamsBuilder
    from streamskit.environment.session import spark_session

    imported = time.perf_counter()
    spark = spark_session()
    ready = time.perf_counter()
    builder = StreamsBuilder()
    orders = builder.stream("orders", value=Serdes.json("user string, amount int"))
    twice = orders.filter(lambda v: v.amount > 500).map_values(
        lambda v: F.struct(v.user, (v.amount * 2).alias("twice"))
    )
    twice.to("out")
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaStreams(builder.build(), "start", servers, spark=spark, state_dir=folder) as streams,
    ):
        streams.await_processed()
        return figures(imported, ready)


def by_hand(servers: str) -> dict[str, float]:
    """Run the same with PySpark alone."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    imported = time.perf_counter()
    from streamskit.environment.jars import spark_jars
    from streamskit.environment.java import find_java

    os.environ["JAVA_HOME"] = str(find_java().home)
    jars = [str(jar) for jar in spark_jars()]
    builder = SparkSession.builder.master("local[*]").config("spark.jars", ",".join(jars))
    spark = builder.config("spark.driver.extraClassPath", os.pathsep.join(jars)).getOrCreate()
    ready = time.perf_counter()
    options = {"kafka.bootstrap.servers": servers}
    source = spark.readStream.format("kafka").options(**options).option("subscribe", "orders")
    value = F.from_json(F.col("value").cast("string"), "user string, amount int")
    orders = source.option("startingOffsets", "earliest").load().select("key", value.alias("v"))
    twice = F.to_json(F.struct(F.col("v.user"), (F.col("v.amount") * 2).alias("twice"))).alias("value")
    made = orders.where("v.amount > 500").select(F.lit("out").alias("topic"), "key", twice)
    with tempfile.TemporaryDirectory() as folder:
        query = made.writeStream.format("kafka").options(**options).option("checkpointLocation", folder).start()
        query.processAllAvailable()
        found = figures(imported, ready)
        query.stop()
    return found


def figures(imported: float, ready: float) -> dict[str, float]:
    """Return seconds of each step, and megabytes of the JVM and of Python."""
    import psutil

    done = time.perf_counter()
    process = psutil.Process()
    java = [child for child in process.children(recursive=True) if child.name() == "java"]
    return {
        "import": imported - BEGAN,
        "Spark session": ready - imported,
        "first micro-batch": done - ready,
        "JVM": sum(child.memory_info().rss for child in java) / 1024**2,
        "Python": process.memory_info().rss / 1024**2,
    }


if __name__ == "__main__":
    way, bootstrap_servers = sys.argv[1:]
    print(json.dumps({"by-hand": by_hand, "streamskit": with_streamskit}[way](bootstrap_servers)))
