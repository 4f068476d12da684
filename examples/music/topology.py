"""From plays to charts: filter, join with the songs, count, and the top five of each genre and of all."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from examples.music.charts import ChartSerde, empty, put_in, taken_out
from examples.music.schemas import LETTER_COUNT, LETTER_COUNTS, PLAY, PLAYS, SONG, SONGS
from streamskit import KStream, StreamsBuilder, Topology

SHORTEST = 30_000
"""For how many milliseconds a song has to be heard to count."""


def topology(songs_everywhere: bool = False) -> Topology:
    """Return the topology.

    Args:
        songs_everywhere: whether each instance keeps all songs (a global table), so that plays need not go to the
            instance of their song first. That suits a small catalogue. Otherwise songs are shared out like everything.
    """
    builder = StreamsBuilder()
    builder.global_table(LETTER_COUNTS, value=LETTER_COUNT, materialized="dead-letters")
    heard = builder.stream(PLAYS, value=PLAY).filter(lambda play: play.duration >= SHORTEST, name="heard")
    found = _with_song_everywhere(builder, heard) if songs_everywhere else _with_song(builder, heard)
    counts = found.group_by(_genre_and_id, name="plays-by-genre").count("play-counts")
    for store, group in (("top-five-by-genre", _in_genre), ("top-five", _among_all)):
        counts.group_by(group, name=f"{store}-entries").aggregate(empty, put_in, taken_out, store, value=ChartSerde())
    return builder.build()


def _with_song(builder: StreamsBuilder, heard: KStream) -> KStream:
    """Send each play to the instance of its song, and look the song up there."""
    songs = builder.table(SONGS, value=SONG, materialized="songs")
    by_song = heard.select_key(lambda play: play.song_id).repartition("plays-by-song")
    return by_song.join(songs, _song, name="played-songs")


def _with_song_everywhere(builder: StreamsBuilder, heard: KStream) -> KStream:
    """Look the song up in the copy of all songs that each instance has."""
    songs = builder.global_table(SONGS, value=SONG, materialized="songs")
    return heard.join(songs, _song, key_selector=lambda listener, play: play.song_id, name="played-songs")


def _song(play: Column, song: Column) -> Column:
    return song


def _genre_and_id(song: Column) -> Column:
    return F.concat(song.genre, F.lit("/"), song.id)


def _in_genre(key: Column, plays: Column) -> tuple[Column, Column]:
    return F.split(key, "/")[0], _entry(key, plays)


def _among_all(key: Column, plays: Column) -> tuple[Column, Column]:
    return F.lit("all"), _entry(key, plays)


def _entry(key: Column, plays: Column) -> Column:
    return F.struct(F.split(key, "/")[1].alias("id"), plays.alias("plays"))
