"""The application of lab 14, which counts trades once in each process; its instances come and go."""

import atexit
import secrets
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from streamskit.broker import find_shared_broker, shared_broker
from streamskit.common.errors import StreamsKitError
from streamskit.dsl.builder import StreamsBuilder
from streamskit.runtime.streams import KafkaStreams

PARTITIONS = 4
APPLICATION = f"lab-elastic-{secrets.token_hex(3)}"
"""Another one in each process, so that two checks at a time do not disturb each other."""
TOPIC = f"{APPLICATION}-trades"
SYMBOLS = [f"{letter}{number}" for letter in "ABCD" for number in range(1, 6)]
COUNTS = {symbol: number + 1 for number, symbol in enumerate(SYMBOLS)}


@cache
def state_of_the_application() -> Path:
    """Let the application count trades once, and return where its state is; its store is `totals`."""
    folder = Path(mkdtemp(prefix="streamskit-lab-"))
    atexit.register(_forget, folder)
    shared_broker().create_topics(TOPIC, partitions=PARTITIONS)
    count_trades(APPLICATION, TOPIC, folder)
    return folder


def count_trades(application_id: str, topic: str, folder: Path) -> None:
    """Put trades into a topic, and let an application count them in the store `totals`; then it ends."""
    broker = shared_broker()
    broker.produce(topic, [(symbol, str(number)) for symbol, count in COUNTS.items() for number in range(count)])
    builder = StreamsBuilder()
    builder.stream(topic).group_by_key().count("totals")
    with KafkaStreams(builder.build(), application_id, broker.bootstrap_servers, state_dir=folder) as streams:
        streams.await_processed("60 seconds")


def _forget(folder: Path) -> None:
    """Leave nothing behind on the broker or on the disk when this process ends."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(StreamsKitError):
        if broker := find_shared_broker():
            left = [topic for topic in broker.topics() if topic.startswith(APPLICATION)]
            if left:
                broker.delete_topics(*left, missing_ok=True)
