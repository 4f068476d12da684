"""What the topics hold: their names, and their records as Avro with a schema registry."""

import os

from streamskit import SchemaRegistry, Serde, Serdes

PLAYS, SONGS = "play-events", "song-feed"
LETTERS, LETTER_COUNTS = "music-dead-letters", "music-dead-letter-counts"
TOPICS = (PLAYS, SONGS, LETTERS, LETTER_COUNTS)

registry = SchemaRegistry(os.environ.get("SCHEMA_REGISTRY_URL", "mock://music"))
"""In this process, unless the environment names a real one, such as "http://localhost:8081"."""


def _avro(record: str, topic: str, /, **fields: str) -> Serde:
    schema = {"type": "record", "name": record, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}
    return Serdes.avro(schema, registry, topic=topic)


PLAY = _avro("PlayEvent", PLAYS, song_id="string", duration="long")
"""Somebody has heard a song for `duration` milliseconds; the record's key is the listener."""

SONG = _avro("Song", SONGS, id="string", name="string", artist="string", album="string", genre="string")
"""A song of the catalogue; the record's key is its id."""

LETTER_COUNT = Serdes.json("count long, last string")
"""How many dead letters of a kind there are, and where the last one's record lies."""
