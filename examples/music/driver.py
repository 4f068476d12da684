"""Listeners who never stop: plays in Avro, a few of them late, a few of them broken, all from one seed."""

import random
import time

from examples.music.schemas import PLAY, PLAYS, SONG, SONGS
from streamskit.broker import Broker
from streamskit.datasets import Feed, plays, songs

BROKEN = (
    b"no Avro at all",
    b"\x00\x00\x00\x00\x63\x0esong-07\xc0\xa9\x07",  # its schema has the number 99, which nobody has registered
    (PLAY.serialize({"song_id": "song-07", "duration": 60_000}) or b"")[:-1],  # the end is missing
)
"""What goes wrong in practice: another format, a schema that nobody knows, bytes that are cut off."""


def announce_songs(broker: Broker) -> None:
    """Write the catalogue to its topic: thirty songs."""
    broker.produce(SONGS, songs(), value=SONG)


def listeners(broker: Broker, per_second: float = 20.0, seed: int = 7) -> Feed:
    """Return a feed of plays, from now on; the same seed sends the same plays.

    Args:
        broker: where to.
        per_second: how many plays a second.
        seed: of listeners, songs and durations.
    """
    now = time.time_ns() // 1_000_000
    endless = plays(seed=seed, per_minute=60 * max(per_second, 1), start=now)
    return Feed(broker, PLAYS, endless, per_second=per_second, value=PLAY, broken=BROKEN)


class Mischief:
    """What happens to a service on an ordinary day, second by second: bursts, late and broken plays.

    >>> [what for what in islice(Mischief(seed=7), 40) if what]
    ['poison', 'poison', 'burst']
    """

    def __init__(self, seed: int = 7) -> None:
        self._chance = random.Random(seed)

    def __iter__(self) -> "Mischief":
        return self

    def __next__(self) -> str:
        return self._chance.choices(["", "burst", "late", "poison"], [30, 2, 2, 2])[0]

    def on(self, feed: Feed) -> None:
        """Let happen to a feed what happens in this second."""
        match next(self):
            case "burst":
                feed.burst(100)
            case "late":
                feed.late(10, by="10 minutes")
            case "poison":
                feed.poison(len(BROKEN))
