"""The exercises of lab 18: from plays to charts, and what a page asks of them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from streamskit.api.windows import Windowed
from streamskit.course.datasets.event_time import HOUR, NEW_YEAR
from streamskit.course.datasets.music import SONGS, plays, songs
from streamskit.course.labs.asking import Ask, Asks, gives, reads_all
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Exercise, Lab, Runs
from streamskit.course.labs.loops import Due, as_if, looped, piped
from streamskit.course.labs.misconceptions import Misconception
from streamskit.course.labs.recording import Batch, Piped, Recording
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


def _heard(record: Piped) -> bool:
    value = record.value
    return record.topic == "music-plays" and value["duration"] >= LONG_ENOUGH and value["song_id"] in BY_ID


def too_short_counted(outcome: Outcome) -> bool:
    """A play that was ended early made a result."""
    short = outcome.at(lambda record: record.topic == "music-plays" and record.value["duration"] < LONG_ENOUGH)
    return any(moment.extra for moment in short)


SKIPPED_COUNTED = Misconception(
    "a song that was skipped counted",
    "A play of less than thirty seconds counted. Who stops before half a minute has not played the song.",
    too_short_counted,
)


def _keys_begin(outcome: Outcome, text: str) -> bool:
    keys = [row.key.key if isinstance(row.key, Windowed) else row.key for row in outcome.actual]
    return any(str(key).startswith(text) for key in keys)


# ---- 1: plays by song ------------------------------------------------------------------------------------------------


def _plays_by_song() -> Recording:
    counts: Counter[str] = Counter()
    known = some_plays(7, 67, ("song-04", "song-17", "song-23"))
    made = [play("song-04", 30, LONG_ENOUGH), play("song-99", 31), play("song-17", 32, LONG_ENOUGH - 1)]

    def loop(record: Piped) -> Iterator[Due]:
        if _heard(record):
            song = BY_ID[record.value["song_id"]]
            counts[f"{song.genre}/{song.id}"] += 1
            yield Due("music-counts", f"{song.genre}/{song.id}", counts[f"{song.genre}/{song.id}"], record.timestamp)

    return looped([ANNOUNCED, *known, *made], ["music-counts"], loop, {"play-counts": counts})


def limit_left_out(outcome: Outcome) -> bool:
    """Only the play of exactly thirty seconds is missing, and what follows from that."""
    first = outcome.differing[0] if outcome.differing else None
    record = first and outcome.piped(first)
    return bool(first and record and first.missing and not first.actual and record.value["duration"] == LONG_ENOUGH)


# ---- 2: charts -------------------------------------------------------------------------------------------------------


def _by_rank(song: Mapping[str, Any]) -> tuple[int, str]:
    return -song["plays"], song["id"]


def _charts(key: Callable[[Mapping[str, Any]], Any] = _by_rank, length: int = 3, with_old: bool = False) -> Recording:
    updates = ["Jazz/20 1", "Jazz/04 1", "Punk/17 4", "Jazz/20 2", "Jazz/05 1", "Jazz/19 1", "Jazz/19 2", "Jazz/05 3"]
    charts: dict[str, Chart] = defaultdict(list)

    def loop(record: Piped) -> Iterator[Due]:
        genre, song = record.key.split("/")
        kept = charts[genre] if with_old else [other for other in charts[genre] if other["id"] != song]
        charts[genre] = sorted([*kept, {"id": song, "plays": record.value}], key=key)[:length]
        yield Due("music-charts", genre, charts[genre])

    steps = []
    for minute, update in enumerate(updates):
        name, count = update.split()
        genre, number = name.split("/")
        steps.append(Piped("music-counts", f"{genre}/song-{number}", int(count), NEW_YEAR + minute * 60_000))
    return looped(steps, ["music-charts"], loop, {"top-three": charts})


def a_song_twice(outcome: Outcome) -> bool:
    """A chart has a song more than once."""
    charts = [[song.get("id") for song in row.value] for row in outcome.actual if _is_chart(row.value)]
    return any(len(ids) > len(set(ids)) for ids in charts)


def too_long(outcome: Outcome) -> bool:
    """A chart has more than three songs."""
    return any(len(row.value) > 3 for row in outcome.actual if _is_chart(row.value))


def _is_chart(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(song, dict) for song in value)


# ---- 3 and 4: what a page asks ---------------------------------------------------------------------------------------


def _counted(seed: int) -> dict[str, int]:
    """Return how often each song was played, by genre and song; two genres begin alike."""
    counts: Counter[str] = Counter()
    for record in plays(900, seed):
        song = BY_ID[record["value"]["song_id"]]
        genre = "Folk Rock" if song.artist == "Brook Tallis" else song.genre
        counts[f"{genre}/{song.id}"] += record["value"]["duration"] >= LONG_ENOUGH
    return {key: count for key, count in counts.items() if count}


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


def _artist_hours() -> Recording:
    steps = [
        play("song-04", 5), play("song-05", 20), play("song-17", 40), play("song-06", 45, 20_000), play("song-04", 62),
        play("song-06", 58), play("song-17", 71), play("song-05", 59), play("song-18", 95), play("song-17", 80),
    ]  # fmt: skip
    counts: Counter[Windowed] = Counter()
    latest: dict[Windowed, int] = {}
    stream_time, late = -1, {}

    def loop(record: Piped) -> Iterator[Due]:
        nonlocal stream_time
        if not _heard(record):
            return
        stream_time = max(stream_time, record.timestamp)
        start = record.timestamp // HOUR * HOUR
        window = Windowed(BY_ID[record.value["song_id"]].artist, start, start + HOUR)
        if window.end + GRACE <= stream_time:
            late[1 + steps.index(record)] = 1
            return
        counts[window] += 1
        latest[window] = max(latest.get(window, 0), record.timestamp)
        yield Due("artist-hours", window, counts[window], latest[window])

    return replace(looped([ANNOUNCED, *steps], ["artist-hours"], loop), dropped=late)


LAB = Lab(
    "18-kafka-music",
    "Kafka Music",
    (
        Exercise(
            "plays_by_song",
            "Count the plays of each song, under a key that begins with its genre.",
            Runs(
                _plays_by_song,
                (
                    SKIPPED_COUNTED,
                    Misconception(
                        "the limit itself left out",
                        "A play of exactly thirty seconds is missing. Who stops before half a minute has not played "
                        "the song; half a minute is enough.",
                        limit_left_out,
                    ),
                    Misconception(
                        "counted by listener",
                        "The keys are listeners. A play's key is who has played; group_by(...) makes the one to count "
                        "by.",
                        lambda outcome: _keys_begin(outcome, "listener"),
                    ),
                    Misconception(
                        "genre missing from the key",
                        "The keys are the songs' ids alone. The next step wants to know the genre from the key: "
                        "genre/song.",
                        lambda outcome: _keys_begin(outcome, "song-"),
                    ),
                ),
            ),
            (
                "Three steps are missing: leave out what is too short, look the song up, group by genre and song.",
                "join(song_table, lambda play, song: song, key_selector=...) looks up the song whose id the selector "
                "returns; from then on the value is the song.",
                '.group_by(lambda song: F.concat(song.genre, F.lit("/"), song.id)) comes after the join.',
            ),
        ),
        Exercise(
            "top_three",
            "Keep a chart of the three songs of each genre that are played most.",
            Runs(
                _charts,
                (
                    Misconception(
                        "a chart without an end",
                        "A chart has more than three songs. Sort first, and then cut.",
                        too_long,
                    ),
                    Misconception(
                        "the old row still in the chart",
                        "A chart has the same song twice, with its old number of plays and with the new one. When a "
                        "row changes, the subtractor is called with the old row, and has to take it out.",
                        a_song_twice,
                    ),
                    Misconception(
                        "least played first",
                        "Your charts begin with the song that is played least.",
                        as_if(
                            lambda: _charts(lambda song: (song["plays"], song["id"])),
                            lambda: _charts(lambda song: song["plays"]),
                        ),
                    ),
                    Misconception(
                        "ties as they come",
                        "Of two songs with as many plays, the task wants the one with the smaller id first. Who comes "
                        "first must not depend on who came last.",
                        as_if(
                            lambda: _charts(lambda song: -song["plays"]),
                            lambda: _charts(lambda song: (-song["plays"], tuple(-ord(sign) for sign in song["id"]))),
                        ),
                    ),
                ),
            ),
            (
                "The adder gets a song with its new number of plays, the subtractor the same song with the old one. "
                "What does each make of the chart?",
                "taken_out: all songs but this one. put_in: the song added to those, sorted, the first three.",
                'sorted(songs, key=lambda one: (-one["plays"], one["id"]))[:3]',
            ),
        ),
        Exercise(
            "chart_page",
            "Write a genre's chart with the names of songs and artists, from two stores.",
            Asks(
                _ask_chart_page,
                "of three genres, and of one that nobody has heard of.",
                (
                    Misconception(
                        "no chart taken for an empty one",
                        "Nobody has played that genre, get returns None, and None is no list that could be gone "
                        "through. The page is empty then.",
                        gives(lambda charts, songs, genre: [_line(entry) for entry in charts.get(genre)]),
                    ),
                    Misconception(
                        "ids in place of names",
                        "A chart holds the songs' ids. What they are called is in the other store, under the id.",
                        gives(_ids_of),
                    ),
                ),
                (
                    Misconception(
                        "whole store read for one key",
                        "The answers are right, and a whole store was read for them. Both stores are asked by key.",
                        reads_all,
                    ),
                ),
            ),
            (
                "One look-up for the chart, and one more for each song in it.",
                'charts.get(genre) is a list of {"id": ..., "plays": ...}, or None; songs.get(id) has name and artist.',
                "for entry in charts.get(genre) or []: song = songs.get(entry['id']), and write the line.",
            ),
        ),
        Exercise(
            "outside_the_chart",
            "List the songs of a genre that are played, and are not in its chart.",
            Asks(
                _ask_outside,
                "of genres that begin alike, of one without a chart, and of one without songs.",
                (
                    Misconception(
                        "keys that begin alike taken for one genre",
                        "Songs of another genre are in it: Folk Rock begins like Folk. The slash belongs to the "
                        "prefix, so that the genre is over where it ends.",
                        gives(
                            lambda counts, charts, genre: _outside(counts, charts, genre, slash=""),
                            lambda counts, charts, genre: _outside(counts, charts, genre, slash="", whole=True),
                        ),
                    ),
                    Misconception(
                        "the chart not taken out",
                        "All songs of the genre are in it. Those of the chart are known already.",
                        gives(lambda counts, charts, genre: _outside(counts, charts, genre, whole=True)),
                    ),
                    Misconception(
                        "no chart taken for an empty one",
                        "One genre has no chart yet; get returns None, and None is no list. All its songs are outside.",
                        gives(_outside_of_a_chart, _outside_of_a_chart_if_any_song),
                    ),
                ),
                (
                    Misconception(
                        "whole store read for one genre",
                        "The answers are right, and all songs of all genres were read. Keys that begin alike lie side "
                        "by side: prefix_scan reads just those.",
                        reads_all,
                    ),
                ),
            ),
            (
                "The keys of the counts begin with the genre. Which call reads the keys that begin alike?",
                'prefix_scan(genre + "/") gives pairs of key and count. The id is behind the slash.',
                'charted = {song["id"] for song in charts.get(genre) or []}; keep the ids that are not in it.',
            ),
        ),
        Exercise(
            "artist_hours",
            "Count the plays of each artist by the hour, also those that are told up to ten minutes late.",
            Runs(
                _artist_hours,
                (
                    SKIPPED_COUNTED,
                    Misconception(
                        "counted by song",
                        "The keys are songs. The artist is known after the join with the songs: group by that.",
                        lambda outcome: _keys_begin(outcome, "song-"),
                    ),
                    Misconception(
                        "counted by listener",
                        "The keys are listeners. group_by(...) makes the key to count by.",
                        lambda outcome: _keys_begin(outcome, "listener"),
                    ),
                ),
            ),
            (
                "As in exercise 1, with another key, and with windows before the count.",
                'group_by(lambda song: song.artist), windowed_by(TimeWindows.of_size_and_grace("1 hour", ...)), '
                "count().",
                '.windowed_by(TimeWindows.of_size_and_grace("1 hour", "10 minutes")).count().to_stream()'
                '.to("artist-hours")',
            ),
        ),
    ),
)
