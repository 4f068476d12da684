"""The exercises of lab 18: from plays to charts, what is new in the charts, and what a page queries."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from streamskit.api.windows import Windowed
from streamskit.course.datasets.event_time import HOUR, NEW_YEAR
from streamskit.course.datasets.music import SONGS, plays, songs
from streamskit.course.labs.asking import Ask, Asks, reading_all, reads_all
from streamskit.course.labs.exercise import Runs
from streamskit.course.labs.exercises.kafka_music_mission import an_afternoon, judge_on_air
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, WrongLoop, looped, piped
from streamskit.course.labs.missions import Lives
from streamskit.course.labs.recording import Batch, OutcomeRow, Piped, Recording
from streamskit.course.labs.stores import table
from streamskit.serdes import Serdes

LONG_ENOUGH = 30_000
BY_ID = {song.id: song for song in SONGS}
CHART = Serdes.json("array<struct<id: string, plays: long>>")
SONG = Serdes.json("id string, name string, artist string, album string, genre string")
Chart = list[dict[str, Any]]

ANNOUNCED = Batch(tuple(piped("music-songs", songs())))
"""The whole catalogue, before the first play."""


def some_plays(count: int, seed: int, of: tuple[str, ...], per_minute: float = 20.0) -> list[Piped]:
    """Return the first plays of some songs."""
    every = (record for record in plays(2_000, seed, per_minute) if record["value"]["song_id"] in of)
    return piped("music-plays", (record for record, _ in zip(every, range(count), strict=False)))


def play(song: str, minute: float, duration: int = 60_000, listener: str = "listener-007") -> Piped:
    """Return a play that is made up."""
    return Piped("music-plays", listener, {"song_id": song, "duration": duration}, NEW_YEAR + int(minute * 60_000))


def _heard(record: Piped, least: int = LONG_ENOUGH) -> bool:
    value = record.value
    return record.topic == "music-plays" and value["duration"] >= least and value["song_id"] in BY_ID


# ---- 1: listeners by song --------------------------------------------------------------------------------------------


def _by_genre(record: Piped) -> str:
    song = BY_ID[record.value["song_id"]]
    return f"{song.genre}/{song.id}"


def _by_song(record: Piped) -> str:
    return str(record.value["song_id"])


def _by_listener(record: Piped) -> str:
    return str(record.key)


def _listeners_by_song(
    key: Callable[[Piped], str] = _by_genre, least: int = LONG_ENOUGH, who: Callable[[Piped], Any] = _by_listener
) -> Recording:
    heard: dict[str, set[Any]] = defaultdict(set)

    def loop(record: Piped) -> Iterator[Due]:
        if _heard(record, least):
            heard[key(record)].add(who(record))
        return iter(())

    known = some_plays(7, 67, ("song-04", "song-17", "song-23"))
    ann = [play("song-04", 29 + again, 40_000, "ann") for again in range(3)] + [play("song-23", 32, listener="ann")]
    made = [play("song-04", 33, LONG_ENOUGH), play("song-99", 34), play("song-17", 35, LONG_ENOUGH - 1)]
    steps = (ANNOUNCED, Batch((*known, *ann, *made)))
    rows = looped(steps, [], loop)
    return replace(
        rows, stores={"listeners-by-song": tuple(OutcomeRow(-1, song, len(who)) for song, who in heard.items())}
    )


# ---- 2: newcomers ----------------------------------------------------------------------------------------------------

CHARTS = (
    ("Jazz", "20"), ("Punk", "18 17"), ("Jazz", "04 20"), ("Jazz", "20 04"), ("Jazz", "20 04 05"), ("Punk", "17 18"),
    ("Jazz", "19 20 04"), ("Jazz", "19 05 20"), ("Punk", "04 18 17"), ("Jazz", "05 19 20"),
)  # fmt: skip
"""Charts in the order in which they came; a song of one genre is not new in it because another one has had it."""


def _newcomers(known: Callable[[list[set[str]], list[set[str]]], set[str]] = lambda own, all_: own[-1]) -> Recording:
    """Return the newcomers of each chart; `known` returns the earlier songs, given a genre's charts and all charts."""
    own: dict[str, list[set[str]]] = defaultdict(lambda: [set()])
    every: list[set[str]] = [set()]

    def loop(record: Piped) -> Iterator[Due]:
        before = known(own[record.key], every)
        for song in record.value:
            if song["id"] not in before:
                yield Due("music-news", record.key, song["id"], record.timestamp)
        own[record.key].append({song["id"] for song in record.value})
        every.append(own[record.key][-1])

    steps = []
    for minute, (genre, songs_) in enumerate(CHARTS):
        chart = [{"id": f"song-{number}", "plays": 40 + minute - place} for place, number in enumerate(songs_.split())]
        steps.append(Piped("music-charts", genre, chart, NEW_YEAR + minute * 60_000))
    return looped(steps, ["music-news"], loop)


# ---- 3 and 4: what a page asks ---------------------------------------------------------------------------------------


def _counted(seed: int) -> dict[str, int]:
    """Return how often each song was played, by genre and song; two genres begin alike."""
    counts: Counter[str] = Counter()
    for record in plays(900, seed):
        song = BY_ID[record["value"]["song_id"]]
        genre = "Folk Rock" if song.artist == "Brook Tallis" else song.genre
        counts[f"{genre}/{song.id}"] += record["value"]["duration"] >= LONG_ENOUGH
    return {key: count for key, count in counts.items() if count}


def _by_rank(song: Mapping[str, Any]) -> tuple[int, str]:
    return -song["plays"], song["id"]


def _charted(counts: Mapping[str, int], length: int) -> dict[str, Chart]:
    charts: dict[str, Chart] = defaultdict(list)
    for key, count in counts.items():
        genre, song = key.split("/")
        charts[genre].append({"id": song, "plays": count})
    return {genre: sorted(some, key=_by_rank)[:length] for genre, some in charts.items()}


def _ask_chart_page() -> list[Ask]:
    charts = _charted(_counted(71), 3)
    stores = (
        table("top-five-by-genre", charts, CHART),
        table("songs", {name: song._asdict() for name, song in BY_ID.items()}, SONG),
    )
    return [
        Ask(f'chart_page(charts, songs, "{genre}")', (*stores, genre), [_line(song) for song in charts.get(genre, [])])
        for genre in ("Jazz", "Punk", "Polka", "Folk Rock")
    ]


def _line(entry: Mapping[str, Any]) -> str:
    song = BY_ID[entry["id"]]
    return f"{song.name}, {song.artist}: {entry['plays']}"


def _ids_of(charts: Any, songs: Any, genre: str) -> list[str]:
    return [entry["id"] for entry in charts.get(genre) or []]


def _ask_outside() -> list[Ask]:
    asks = []
    for seed, length in ((71, 2), (73, 3)):
        counts = _counted(seed)
        charts = {genre: chart for genre, chart in _charted(counts, length).items() if genre != "Soul"}
        stores = table("play-counts", counts, Serdes.long()), table("top-five-by-genre", charts, CHART)
        for genre in ("Jazz", "Folk", "Folk Rock", "Soul", "Polka"):
            asks.append(
                Ask(f'outside_the_chart(counts, charts, "{genre}")', (*stores, genre), _outside(*stores, genre))
            )
    return asks


def _outside(counts: Any, charts: Any, genre: str, slash: str = "/", whole: bool = False) -> list[str]:
    charted = [] if whole else [song["id"] for song in charts.get(genre) or []]
    ids = [key.split("/")[1] for key, _ in counts.prefix_scan(genre + slash)]
    return [each for each in ids if each not in charted]


def _outside_of_a_chart(counts: Any, charts: Any, genre: str) -> list[str]:
    charted = [song["id"] for song in charts.get(genre)]
    return [each for each in _outside(counts, charts, genre) if each not in charted]


def _outside_of_a_chart_if_any_song(counts: Any, charts: Any, genre: str) -> list[str]:
    return _outside_of_a_chart(counts, charts, genre) if counts.prefix_scan(f"{genre}/") else []


# ---- 5: artists by the hour ------------------------------------------------------------------------------------------

GRACE = HOUR // 6


def _by_artist(record: Piped) -> str:
    return BY_ID[record.value["song_id"]].artist


def _artist_hours(key: Callable[[Piped], str] = _by_artist, least: int = LONG_ENOUGH, grace: int = GRACE) -> Recording:
    steps = [
        play("song-04", 5), play("song-05", 20), play("song-17", 40), play("song-06", 45, 20_000), play("song-04", 62),
        play("song-06", 58), play("song-17", 69.9), play("song-04", 57), play("song-06", 70), play("song-05", 59),
        play("song-18", 95), play("song-17", 80),
    ]  # fmt: skip
    counts: Counter[Windowed] = Counter()
    latest: dict[Windowed, int] = {}
    stream_time, late = -1, {}

    def loop(record: Piped) -> Iterator[Due]:
        nonlocal stream_time
        if not _heard(record, least):
            return
        stream_time = max(stream_time, record.timestamp)
        start = record.timestamp // HOUR * HOUR
        window = Windowed(key(record), start, start + HOUR)
        if window.end + grace <= stream_time:
            late[1 + steps.index(record)] = 1
            return
        counts[window] += 1
        latest[window] = max(latest.get(window, 0), record.timestamp)
        yield Due("artist-hours", window, counts[window], latest[window])

    return replace(looped([ANNOUNCED, *steps], ["artist-hours"], loop), dropped=late)


LAB = lab(
    "18-kafka-music",
    listeners_by_song=Runs(
        _listeners_by_song,
        wrong={
            "a song that was skipped counted": WrongLoop(lambda: _listeners_by_song(least=0)),
            "the limit itself left out": WrongLoop(lambda: _listeners_by_song(least=LONG_ENOUGH + 1)),
            "every play counted": WrongLoop(lambda: _listeners_by_song(who=lambda record: record.timestamp)),
            "rows of a count": WrongLoop(lambda: _listeners_by_song(who=lambda record: None)),
            "counted by listener": [
                WrongLoop(lambda: _listeners_by_song(_by_listener, who=_by_song)),
                WrongLoop(lambda: _listeners_by_song(_by_listener, who=lambda record: record.timestamp)),
            ],
            "genre missing from the key": [
                WrongLoop(partial(_listeners_by_song, _by_song, least)) for least in (LONG_ENOUGH, 0)
            ],
        },
        tested="Plays went in, some by listeners who played a song again; the store has each song's listeners.",
        partitions=3,
    ),
    newcomers=Runs(
        _newcomers,
        wrong={
            "a chart forgotten": WrongLoop(lambda: _newcomers(lambda own, all_: set())),
            "once seen, never new again": WrongLoop(lambda: _newcomers(lambda own, all_: set().union(*own))),
            "one memory for all genres": [
                WrongLoop(lambda: _newcomers(lambda own, all_: all_[-1])),
                WrongLoop(lambda: _newcomers(lambda own, all_: set().union(*all_))),
            ],
            "the first chart for ever": WrongLoop(lambda: _newcomers(lambda own, all_: [*own, set()][1])),
        },
    ),
    chart_page=Asks(
        _ask_chart_page,
        "of three genres, and of one that nobody has heard of.",
        wrong={
            "no chart taken for an empty one": lambda charts, songs, genre: [
                _line(entry) for entry in charts.get(genre)
            ],
            "ids in place of names": _ids_of,
            "whole store read for one key": reading_all(
                lambda charts, songs, genre: [_line(entry) for entry in charts.get(genre) or []]
            ),
        },
        habits={"whole store read for one key": reads_all},
    ),
    outside_the_chart=Asks(
        _ask_outside,
        "of genres that begin alike, of one without a chart, and of one without songs.",
        wrong={
            "keys that begin alike taken for one genre": [
                lambda counts, charts, genre: _outside(counts, charts, genre, slash=""),
                lambda counts, charts, genre: _outside(counts, charts, genre, slash="", whole=True),
            ],
            "the chart not taken out": lambda counts, charts, genre: _outside(counts, charts, genre, whole=True),
            "no chart taken for an empty one": [_outside_of_a_chart, _outside_of_a_chart_if_any_song],
            "whole store read for one genre": reading_all(_outside),
        },
        habits={"whole store read for one genre": reads_all},
    ),
    artist_hours=Runs(
        _artist_hours,
        wrong={
            "a song that was skipped counted": WrongLoop(lambda: _artist_hours(least=0)),
            "counted by song": WrongLoop(lambda: _artist_hours(_by_song)),
            "counted by listener": WrongLoop(lambda: _artist_hours(_by_listener)),
            "late record counted": [WrongLoop(partial(_artist_hours, grace=grace)) for grace in (24 * HOUR, GRACE + 1)],
            "record in time dropped": [WrongLoop(partial(_artist_hours, grace=grace)) for grace in (0, GRACE // 2)],
        },
    ),
    on_air=Lives("on_air", an_afternoon, judge_on_air, returns_application=True),
)
