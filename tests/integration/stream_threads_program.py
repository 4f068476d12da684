"""An application on a Spark with four slots, whose stream threads come and go; it prints what ran beside what.

`python -m tests.integration.stream_threads_program SERVERS NAME FOLDER GUARANTEE`
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import functions as F

from streamskit import (
    KafkaStreams,
    Processor,
    ProcessorContext,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    Topology,
    spark_session,
    spark_tasks,
)
from streamskit.broker import ExternalBroker
from streamskit.environment.session import INTERPRETED

PARTITIONS = 4
EACH = 15
"""How many records each partition gets in a round."""
SECONDS = 0.1
"""How long a record takes."""
PATIENCE = "180 seconds"

Interval = tuple[float, float]


class Slow(Processor):
    """Takes its time for each record, and says when that was, and how often it has seen the key."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.seen = context.state_store("seen")

    def process(self, record: Record) -> None:
        began = time.time()
        time.sleep(SECONDS)
        times = (self.seen.get(record.key) or 0) + 1
        self.seen.put(record.key, times)
        self.context.forward(record.with_value(f"{began} {time.time()} {times}"))


def topology(name: str) -> Topology:
    """Return it: a processor with a store, and behind a repartition a count by Spark's own operators."""
    builder = StreamsBuilder()
    seen = Stores.persistent_key_value_store("seen", Serdes.string(), Serdes.long())
    timed = builder.stream(f"{name}-in").process(Slow, stores=[seen])
    timed.to(f"{name}-out")
    timed.group_by(lambda k, v: F.element_at(F.split(k, "-"), 1)).count("counts")
    return builder.build()


def at_a_time(intervals: Iterable[Interval]) -> int:
    """Return how many intervals overlap where most of them do."""
    changes = sorted(change for begin, end in intervals for change in ((begin, 1), (end, -1)))
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


class Rounds:
    """Feeds an application that runs, round by round, and looks at what ran beside what in each of them."""

    def __init__(self, servers: str, name: str) -> None:
        self.broker, self.name, self.sent, self._begin, self._job = ExternalBroker(servers), name, 0, 0, -1

    def feed(self, rounds: int = 1) -> None:
        """Write new keys: as many for each partition."""
        records: list[dict[str, Any]] = []
        self._begin = self.sent
        for number in range(self.sent, self.sent + rounds * PARTITIONS * EACH):
            records.append({"partition": number % PARTITIONS, "key": f"g{number % 3}-{number}", "value": ""})
        self.broker.produce(f"{self.name}-in", records)
        self.sent += len(records)

    def look(self, streams: KafkaStreams) -> dict[str, Any]:
        """Return what ran beside what of the last records, when all is processed."""
        streams.await_processed(PATIENCE)
        rows = self.broker.consume(f"{self.name}-out", isolation="read_committed")
        new = [value for key, value in zip(rows["key"], rows["value"], strict=True) if number_in(key) >= self._begin]
        ran = spark_tasks(streams)
        ran = ran[ran["job"] > self._job]
        self._job = int(ran["job"].max())
        tasks = {
            str(query)[-1]: at_a_time(zip(rows["started"], rows["started"] + rows["milliseconds"], strict=True))
            for query, rows in ran.groupby("query")
        }
        return {
            "records": at_a_time(map(interval, new)),
            "tasks": tasks,
            "slots": sorted({int(number) for number in ran["slots"].fillna(0)}),
            "restarts": int(streams.metrics()["restarts"].sum()),
            "explained": "slot of Spark's" in streams.explain() or "slots of Spark's" in streams.explain(),
        }

    def end(self, streams: KafkaStreams) -> dict[str, Any]:
        """Return what is there in the end: of each record of the input, how often it was seen and written."""
        rows = self.broker.consume(f"{self.name}-out", isolation="read_committed")
        return {
            "written": sorted(map(number_in, rows["key"])),
            "seen": sorted({int(value.split()[2]) for value in rows["value"]}),
            "counts": {row.key: row.value for row in streams.store("counts").all()},
            "sent": self.sent,
        }


def number_in(key: str) -> int:
    return int(key.split("-")[1])


def interval(value: str) -> Interval:
    begin, end, _ = value.split()
    return float(begin), float(end)


def run(servers: str, name: str, folder: str, guarantee: str) -> Iterator[tuple[str, Any]]:
    """Yield what was seen, round by round."""
    spark_session(f"local[{PARTITIONS}]", **{key.replace(".", "__"): value for key, value in INTERPRETED.items()})
    rounds = Rounds(servers, name)

    def application(number: int | None = None, **settings: Any) -> KafkaStreams:
        return KafkaStreams(
            topology(name), name, servers, state_dir=folder, processing_guarantee=guarantee,
            num_stream_threads=number, **settings,
        )  # fmt: skip

    with application() as streams:
        rounds.feed()
        yield "none", rounds.look(streams)
    with application(1) as streams:
        for number in (1, 2, 4):
            while (streams.num_stream_threads or 0) < number:
                yield "added", streams.add_stream_thread()
            rounds.feed()
            yield str(number), rounds.look(streams)
    # Many small micro-batches, so that a change comes between two of them, and in the midst of one.
    with application(4, max_records_per_batch=2 * PARTITIONS) as streams:
        rounds.feed(2)
        for _ in range(3):
            time.sleep(2)
            yield "removed", streams.remove_stream_thread()
        yield "changing", rounds.look(streams)
    with application() as streams:
        rounds.feed()
        yield "none again", rounds.look(streams)
        yield "end", rounds.end(streams)


if __name__ == "__main__":
    print(json.dumps(list(run(*sys.argv[1:]))))
