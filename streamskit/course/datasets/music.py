"""Songs, and who plays them when: the data of a music service, made from a seed. Songs and artists are invented."""

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from streamskit.course.datasets.arguments import checked
from streamskit.course.datasets.event_time import HOUR, NEW_YEAR, numbers

SONG_SCHEMA = "id string, name string, artist string, album string, genre string"
"""The fields of a song, as `Serdes.json` takes them."""

PLAY_SCHEMA = "song_id string, duration long"
"""The fields of a play event; `duration` is for how many milliseconds the song was heard."""


class Song(NamedTuple):
    """A song of the catalogue."""

    id: str
    name: str
    artist: str
    album: str
    genre: str


ALBUMS = (
    ("Punk", "The Loose Ends", "Rent Is Due", ("Last Bus Home", "Broken Lift", "Noise Complaint")),
    ("Jazz", "Ada Winter Trio", "Slow Water", ("Blue Ferry", "Half Past Nothing", "Rain in 5/4")),
    ("Folk", "Hazel & Finn", "The Orchard", ("Seven Gates", "Wool and Salt", "Letters North")),
    ("Techno", "Konstant", "Grid", ("Row Major", "Night Shift", "Phase Two")),
    ("Soul", "Marlene Reyes", "Open Windows", ("Tell It Slow", "Sunday Shoes", "Better Now")),
    ("Punk", "Static Choir", "Loud Enough", ("Fire Drill", "No Refunds", "Glue")),
    ("Jazz", "Kofi Mensah", "Accra Nights", ("Kites", "The Long Bridge", "Old Shoes Waltz")),
    ("Folk", "Brook Tallis", "Stone Bread", ("Miller's Daughter", "Grey Mare", "The Toll Road")),
    ("Techno", "Ilse Brandt", "Cold Start", ("Cache Miss", "Idle Loop", "Warm Restart")),
    ("Soul", "The Velvet Hours", "After Ten", ("Stay a While", "Corner Table", "Last Dance, Again")),
)
"""Genre, artist, album and its songs."""

TRACKS = tuple((name, artist, album, genre) for genre, artist, album, names in ALBUMS for name in names)
SONGS = tuple(Song(f"song-{number:02}", *track) for number, track in enumerate(TRACKS, start=1))


@checked
def songs(start: int = NEW_YEAR) -> Iterator[dict[str, Any]]:
    """Yield the thirty songs of the catalogue, ready for `broker.produce`; the key is the song's id.

    Args:
        start: the time at which they are announced, in milliseconds since 1970.

    >>> next(songs())["value"]["name"]
    'Last Bus Home'
    """
    for song in SONGS:
        yield {"key": song.id, "value": song._asdict(), "timestamp": start}


@checked
def plays(
    count: int | None = None, seed: int = 7, per_minute: float = 20.0, start: int = NEW_YEAR
) -> Iterator[dict[str, Any]]:
    """Yield who has played what, in the order of time, ready for `broker.produce`; the key is the listener.

    One play in five ends before thirty seconds. Most songs keep their place; every fifth is new, hardly known in
    the first hour and a hit some hours later.

    Args:
        count: how many; a smaller count gives the first of the same plays. Without it they never end.
        seed: another seed gives other plays of the same songs.
        per_minute: how many there are on average in a minute of event time.
        start: when the first is, in milliseconds since 1970.

    >>> next(plays(1))["value"].keys()
    dict_keys(['song_id', 'duration'])
    """
    # Which songs are loved is the same for every seed.
    loved = random.Random(2026).sample(SONGS, len(SONGS))
    chance = random.Random(seed)
    now = float(start)
    for _ in numbers(count):
        hours = (now - start) / HOUR
        weights = [_popularity(place, hours) for place in range(len(loved))]
        is_skipped = chance.random() < 0.2
        yield {
            "key": f"listener-{int(chance.triangular(1, 301, 1)):03}",
            "value": {
                "song_id": chance.choices(loved, weights)[0].id,
                "duration": chance.randrange(2_000, 30_000) if is_skipped else chance.randrange(30_000, 240_000),
            },
            "timestamp": int(now),
        }
        now += chance.expovariate(per_minute) * 60_000


def _popularity(place: int, hours: float) -> float:
    """Return how often the song at a place is played relative to the others, after some hours."""
    growth = min(hours, 4.0) if place % 5 == 2 else 1.0
    return growth / (place + 4)
