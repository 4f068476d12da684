"""What an application of an earlier Spark has left: its folder, and its topics.

    python -m tests.integration.older_checkpoints tests/integration/checkpoints/spark-4.2.zip

writes that of the Spark that runs it, stopped in the middle of its numbers.
"""

import base64
import importlib.metadata
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from streamskit import Serdes
from streamskit.broker import Broker, EmbeddedBroker
from streamskit.environment.session import spark_session
from streamskit.kafka.consumer import ConsumedRecord
from tests.integration.program_of_everything import prepare, run_in, write

APPLICATION = "older"
BEFORE, ALL = 25, 40
"""How many of the numbers it has read, and how many there are."""

SNAPSHOTS = {
    "spark__sql__streaming__stateStore__minDeltasForSnapshot": "2",
    "spark__sql__streaming__stateStore__maintenanceInterval": "500ms",
}
"""Has Spark keep snapshots of so small a state, too."""

TOPICS = "topics.json"
NOT_KEPT = ("__", f"{APPLICATION}-0-checkpoint")
"""Topics of Kafka's own, and the copy of the folder, which is there itself."""


def make(target: Path) -> None:
    """Write what an application of the installed Spark leaves."""
    spark = spark_session("local[2]", **SNAPSHOTS)
    with tempfile.TemporaryDirectory() as scratch, EmbeddedBroker(data_dir=Path(scratch) / "broker") as broker:
        state_dir = Path(scratch) / "state"
        prepare(broker, APPLICATION)
        for first in range(0, BEFORE, 5):
            write(broker, APPLICATION, range(first, first + 5))
            streams = run_in(state_dir, broker, APPLICATION)
            time.sleep(2)  # for snapshots
            streams.close()
        folder = state_dir / APPLICATION
        (folder / TOPICS).write_text(json.dumps(_dumped(broker), indent=1))
        shutil.make_archive(str(target.with_suffix("")), "zip", folder)
    spark.stop()
    print(f"{target}: of Spark {importlib.metadata.version('pyspark')}")


def put_back(archive: Path, broker: Broker, state_dir: Path) -> None:
    """Have a broker and a folder hold what an application has left."""
    folder = state_dir / APPLICATION
    folder.mkdir(parents=True, mode=0o700)
    shutil.unpack_archive(archive, folder)
    topics = folder / TOPICS
    for topic, left in json.loads(topics.read_text()).items():
        broker.create_topics(topic, partitions=1, config=left["config"])
        broker.produce(topic, map(_loaded, left["records"]))
    topics.unlink()
    # These topics have other ids than those that it has read.
    known = folder / "topology.json"
    known.write_text(json.dumps(json.loads(known.read_text()) | {"topics": {}}))


def _dumped(broker: Broker) -> dict[str, Any]:
    return {
        topic: {
            "config": dict(broker.describe_topic(topic).config),
            "records": [_saved(each) for each in broker.records(topic, key=Serdes.bytes(), value=Serdes.bytes())],
        }
        for topic in broker.topics()
        if not topic.startswith(NOT_KEPT)
    }


def _saved(record: ConsumedRecord) -> list[Any]:
    headers = [[name, _text(data)] for name, data in record.headers]
    return [_text(record.key), _text(record.value), record.timestamp, headers]


def _loaded(record: list[Any]) -> dict[str, Any]:
    key, value, timestamp, headers = record
    pairs = [(name, _data(text)) for name, text in headers]
    return {"key": _data(key), "value": _data(value), "timestamp": timestamp, "headers": pairs}


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _data(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
