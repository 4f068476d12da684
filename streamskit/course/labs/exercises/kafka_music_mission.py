"""The mission of lab 18: the charts go on the air, and another program asks for them over HTTP."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from pyspark.sql import functions as F

from streamskit.common.errors import UnknownStateStoreError
from streamskit.course.datasets.music import PLAY_SCHEMA, SONG_SCHEMA, plays, songs
from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.missions import Site, is_up
from streamskit.dsl.builder import StreamsBuilder
from streamskit.queries.client.query_client import QueryClient
from streamskit.runtime.streams import KafkaStreams
from streamskit.serdes import Serdes
from streamskit.topology import Topology

SONG, PLAY = Serdes.json(SONG_SCHEMA), Serdes.json(PLAY_SCHEMA)
CHART = Serdes.json("array<struct<id: string, plays: long>>")
CHARTS, NAMES = "top-three", "songs"
"""The stores that the front page asks for."""

PlayOrSong = dict[str, Any]
Chart = list[dict[str, Any]]

CATALOGUE = list(songs())
DAY = list(plays(700, seed=18))
AFTERNOON, EVENING = DAY[:400], DAY[400:]
NEW = {"id": "song-31", "name": "Night Bus", "artist": "Ada Winter Trio", "album": "Slow Water", "genre": "Jazz"}
PREMIERE = [
    {"key": f"fan-{n}", "value": {"song_id": NEW["id"], "duration": 60_000 if n % 3 else 9_000}} for n in range(90)
]
WITH_NEW, EVERYTHING = [*CATALOGUE, {"key": NEW["id"], "value": NEW}], [*DAY, *PREMIERE]
"""The songs and the plays of the whole day."""


def an_afternoon(site: Site) -> None:
    """Put the catalogue and the plays of an afternoon into their topics."""
    site.create_topics(songs=1, plays=2)
    site.broker.produce(site.topic("songs"), CATALOGUE)
    site.broker.produce(site.topic("plays"), AFTERNOON)


def judge_on_air(site: Site, returned: KafkaStreams) -> Verdict:
    """Let the evening come, with a song that nobody knew, and judge by what the front page gets over HTTP."""
    if not is_up(returned):
        return mistaken("not on the air")
    if not returned.application_server:
        return mistaken("nobody to ask")
    site.broker.produce(site.topic("songs"), [(NEW["id"], NEW)])
    site.broker.produce(site.topic("plays"), [*EVENING, *PREMIERE])
    returned.await_processed("60 seconds")
    with QueryClient(f"http://{returned.application_server}") as client:
        try:
            charts, names = client.store(CHARTS), client.store(NAMES)
            found, known = dict(charts.all()), dict(names.all())
        except UnknownStateStoreError as error:
            return mistaken("a store that nobody can ask for", store=NAMES if f"'{NAMES}'" in str(error) else CHARTS)
    return _by_charts(found, known)


def _by_charts(found: dict[str, Any], known: dict[str, Any]) -> Verdict:
    due = charts_of(EVERYTHING, WITH_NEW)
    if found == due:
        if missing := {song["id"] for chart in found.values() for song in chart} - known.keys():
            return wrong(f"The store {NAMES} does not know {', '.join(sorted(missing))}, which a chart names.")
        return right(
            f"{len(EVERYTHING)} plays, and over HTTP each of {len(found)} charts is right; {NEW['name']}, which was "
            "announced while the charts were on the air, is in them with its name."
        )
    for mistake, made in OTHER_CHARTS.items():
        if found == made():
            return mistaken(mistake)
    off = sorted(genre for genre, chart in due.items() if found.get(genre) != chart)
    return wrong(f"The chart of {off[0]} is {found.get(off[0])!r}, and should be another one." if off else
                 f"There are charts of {', '.join(sorted(found))}.")  # fmt: skip


def charts_of(
    some: Iterable[PlayOrSong], catalogue: Iterable[PlayOrSong], least: int = 30_000, length: int = 3
) -> dict[str, Chart]:
    """Return the chart of each genre: the songs with the most plays that are long enough."""
    genres = {record["key"]: record["value"]["genre"] for record in catalogue}
    counts: dict[str, dict[str, int]] = {}
    for record in some:
        song, duration = record["value"]["song_id"], record["value"]["duration"]
        if duration >= least and song in genres:
            of_genre = counts.setdefault(genres[song], {})
            of_genre[song] = of_genre.get(song, 0) + 1
    return {
        genre: [{"id": song, "plays": count} for song, count in islice(sorted(each.items(), key=_by_plays), length)]
        for genre, each in counts.items()
    }


def _by_plays(row: tuple[str, int]) -> tuple[int, str]:
    return -row[1], row[0]


OTHER_CHARTS: dict[str, Callable[[], dict[str, Chart]]] = {
    "short plays counted": lambda: charts_of(EVERYTHING, WITH_NEW, least=0),
    "the afternoon is missing": lambda: charts_of([*EVENING, *PREMIERE], WITH_NEW),
    "yesterday's catalogue": lambda: charts_of(DAY, CATALOGUE),
    "five instead of three": lambda: charts_of(EVERYTHING, WITH_NEW, length=5),
}
"""Charts that result from a mistake."""


# ---- wrong answers ---------------------------------------------------------------------------------------------------


def music(
    site: Site, least: int = 30_000, length: int = 3, names: str | None = NAMES, listed: bool = False
) -> Topology:
    """Return the topology of the charts, or one with a mistake."""

    def taken_out(genre: str, song: Any, chart: Chart) -> Chart:
        return [other for other in chart if other["id"] != song["id"]]

    def put_in(genre: str, song: Any, chart: Chart) -> Chart:
        ranked = [*taken_out(genre, song, chart), song]
        return sorted(ranked, key=lambda one: (-one["plays"], one["id"]))[:length]

    builder = StreamsBuilder()
    catalogue = builder.global_table(site.topic("songs"), value=SONG, materialized=names)
    heard = builder.stream(site.topic("plays"), value=PLAY).filter(lambda play: play.duration >= least)
    if listed:  # as they were when the program was written
        known = F.create_map(*(F.lit(part) for song in CATALOGUE for part in (song["key"], song["value"]["genre"])))
        ids = heard.map_values(lambda play: F.concat(known[play.song_id], F.lit("/"), play.song_id))
        counted = ids.filter(lambda v: v.isNotNull()).group_by(lambda v: v)
    else:
        joined = heard.join(catalogue, lambda play, song: song, key_selector=lambda listener, play: play.song_id)
        counted = joined.group_by(lambda song: F.concat(song.genre, F.lit("/"), song.id))
    by_genre = counted.count("play-counts").group_by(
        lambda key, count: (F.split(key, "/")[0], F.struct(F.split(key, "/")[1].alias("id"), count.alias("plays")))
    )
    by_genre.aggregate(list, put_in, taken_out, CHARTS, value=CHART)
    return builder.build()
