"""Lab 23: a route that runs where its data is, letters that get a second life, and plays of two generations."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx
from pyspark.sql import functions as F

from streamskit.api.processor import Processor, Record
from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.exercise import Judges, Runs, Verdict, mistaken, right, wrong
from streamskit.course.labs.exercises.kafka_music_as_a_service_mission import (
    COUNTS,
    WRONG,
    first_release,
    judge_next_release,
    shares,
)
from streamskit.course.labs.exercises.kafka_music_as_a_service_routes import KEY, STORE
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.local_instances import LocalInstances
from streamskit.course.labs.loops import Due, looped
from streamskit.course.labs.missions import Lives
from streamskit.course.labs.recording import Batch, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.queries.rest_service import RestCall, RestService
from streamskit.serdes import SchemaRegistry, Serde, Serdes
from streamskit.state.stores import Stores

REGISTRY = SchemaRegistry("mock://lab-music")


def play_serde(subject: str, /, **fields: Any) -> Serde:
    """Return the serde of plays with these fields; a pair is a field's type and its default."""
    described = [
        {"name": name, "type": kind[0], "default": kind[1]} if isinstance(kind, tuple) else {"name": name, "type": kind}
        for name, kind in fields.items()
    ]
    return Serdes.avro({"type": "record", "name": "Play", "fields": described}, REGISTRY, subject=subject)


# ---- 1: a route ------------------------------------------------------------------------------------------------------

NEVER_PLAYED = "Jazz/song-99", "Polka/song-01"
"""A song that nobody has played, and one of a genre that nobody plays."""


def examine_share_service(answer: Any) -> Verdict:
    """Ask three instances for the share of each song, each time one that does not have it."""
    service = answer()
    if not isinstance(service, RestService):
        return wrong(f"It has to return the RestService; it returned {service!r}.")
    try:
        instances = LocalInstances(STORE, COUNTS, service=service)
    except StreamsKitError as error:
        return wrong(str(error))
    with instances, httpx.Client(trust_env=False, timeout=10) as client:
        asked = {key: instances.owner(key) for key in (*COUNTS, *NEVER_PLAYED)}
        urls = {key: instances.urls[(owner + 1) % len(instances.urls)] for key, owner in asked.items()}
        said = {key: client.get(f"{url}/share/{quote(key)}") for key, url in urls.items()}
        ran = {key: answer.headers.get("streamskit-answered-by", "").split(" ")[0] for key, answer in said.items()}
    if not any(ran.values()):
        return wrong(f"Nobody answers /share/Folk/song-01: {next(iter(said.values())).text}")
    if ran != {key: instances.urls[owner].removeprefix("http://") for key, owner in asked.items()}:
        return mistaken("runs where it is asked")
    if broken := [key for key in NEVER_PLAYED if said[key].status_code != 404]:
        return mistaken("nothing played", path=f"/share/{broken[0]}", status=said[broken[0]].status_code)
    return _by_shares({key: said[key] for key in COUNTS}, asked)


def _by_shares(said: Mapping[str, httpx.Response], owners: Mapping[str, int]) -> Verdict:
    if failed := [key for key, answer in said.items() if answer.status_code != 200]:
        return wrong(f"/share/{failed[0]} got {said[failed[0]].status_code}: {said[failed[0]].text}")
    told = {key: answer.json() for key, answer in said.items()}
    here = {key: shares({each: COUNTS[each] for each in COUNTS if owners[each] == owners[key]})[key] for key in COUNTS}
    if told == shares(COUNTS):
        return right(
            f"{len(said)} songs were asked for at an instance that does not have them. Each function ran where the "
            "song is, and knew the plays of the whole genre; for what nobody has played came a 404."
        )
    if told == here:
        return mistaken("only what is here")
    if all(told[key] == shares(COUNTS)[key] for key in COUNTS if not key.startswith("Folk/")):
        return mistaken("genres that begin alike")
    off = next(key for key, due in shares(COUNTS).items() if told[key] != due)
    return wrong(f"/share/{off} gave {told[off]}, and should give {shares(COUNTS)[off]}.")


def share_service(
    prefix: str = "{genre}/", routed: bool = True, everywhere: bool = True, nothing: Any = None
) -> Callable[[], RestService]:
    """Return an answer to the first exercise, or one with a mistake."""

    def answer() -> RestService:
        service = RestService()
        place = {"store": STORE, "key": KEY} if routed else {}

        @service.get("/share/{genre}/{song}", **place)
        async def share(call: RestCall, genre: str, song: str) -> Any:
            one = await call.ask("state", "keyvalue", STORE, f"{genre}/{song}")
            if one is None and nothing is not KeyError:
                return nothing
            begin = prefix.format(genre=genre)
            if everywhere:
                rows = (await call.ask("state", "keyvalues", STORE, "prefix", begin))["rows"]
                total = sum(row["value"] for row in rows)
            else:
                total = sum(plays for _, plays in call.store(STORE).prefix_scan(begin))
            return {"plays": one["value"], "share": one["value"] / total}

        return service

    return answer


# ---- 2: dead letters -------------------------------------------------------------------------------------------------

PLAY = Serdes.json("song_id string, duration long")
PREFIX = "__streams.errors."
WHOLE, AGAIN = b'{"song_id": "song-04", "duration": 61000}', b'{"song_id": "song-07", "duration": 0}'
LETTERS = (
    ("ann", 0, 8, WHOLE),
    ("ben", 1, 8, WHOLE),  # the same place in another partition
    ("ann", 0, 9, WHOLE),  # she has heard it again
    ("cem", 1, 10, b"\x00\x00\x00\x00\x01\x0esong-07\xc0\xa9"),
    ("ann", 0, 8, WHOLE),  # the same letter for the second time
    ("dee", 0, 11, b'{"song_id": "song-04"}'),
    ("dee", 0, 12, WHOLE[:-9]),
    ("eve", 1, 13, b"no Avro at all"),
    ("eve", 1, 14, AGAIN),
    ("cem", 1, 10, b"another text"),  # a letter of a place that was looked at
    ("fay", 0, 15, b"[4]"),
    ("eve", 1, 14, AGAIN),
)
"""Whose play it was, the partition and the offset at which it lies, and its bytes."""


def letters() -> Recording:
    """Return dead letters, and what has to become of each."""
    piped = []
    for number, (key, partition, offset, data) in enumerate(LETTERS):
        said = {"topic": "play-events", "partition": partition, "offset": offset}
        headers = tuple((PREFIX + name, str(value).encode()) for name, value in said.items())
        piped.append(Piped("music-dead-letters", key, data, 1_000 * number, headers, ("value",)))
    steps = [Batch(tuple(piped[:4])), Batch(tuple(piped[4:]))]  # before the service started again, and after it
    seen = set[str]()

    def loop(letter: Piped) -> Iterator[Due]:
        place = place_of(letter.headers)
        if place not in seen:
            seen.add(place)
            play = play_in(letter.value)
            topic, value = ("repaired-plays", play) if play else ("music-graves", place)
            yield Due(topic, letter.key, value, letter.timestamp)

    return looped(steps, ("repaired-plays", "music-graves"), loop)


def place_of(headers: Any) -> str:
    """Return where the record of a letter lies, such as play-events-0@8."""
    said = {name.removeprefix(PREFIX): value.decode() for name, value in headers}
    return f"{said['topic']}-{said['partition']}@{said['offset']}"


def play_in(data: bytes) -> dict[str, Any] | None:
    """Return the play that somebody wrote as JSON; None where it is none."""
    try:
        play = json.loads(data)
        return {"song_id": play["song_id"], "duration": play["duration"]}
    except (ValueError, KeyError, TypeError):
        return None


def play_made_up(data: bytes) -> dict[str, Any] | None:
    """Return a play in which what is missing is 0."""
    return play_in(data.replace(b'"song-04"}', b'"song-04", "duration": 0}'))


def play_trusted(data: bytes) -> dict[str, Any] | None:
    """Return a play of whatever begins like JSON."""
    return json.loads(data) if data.startswith(b"{") else None


def second_life(
    once_by: Callable[[Record], Any] | None = lambda record: place_of(record.headers),
    read: Callable[[bytes], dict[str, Any] | None] = play_in,
    graves: bool = True,
) -> Callable[[StreamsBuilder], None]:
    """Return an answer to the second exercise, or one with a mistake."""

    class Opened(Processor):
        def process(self, record: Record) -> None:
            if once_by is not None:
                done, mark = self.context.state_store("done"), str(once_by(record))
                if done.get(mark):
                    return
                done.put(mark, "yes")
            play = read(record.value) or {"song_id": None, "duration": None}
            self.context.forward(record.with_value({"place": place_of(record.headers), **play}))

    def answer(builder: StreamsBuilder) -> None:
        done = Stores.persistent_key_value_store("done", Serdes.string(), Serdes.string())
        found = builder.stream("music-dead-letters", value=Serdes.byte_array()).process(
            Opened, stores=[done], value=Serdes.json("place string, song_id string, duration long")
        )
        whole = found.filter(lambda v: v.song_id.isNotNull())
        whole.map_values(lambda v: F.struct(v.song_id, v.duration)).to("repaired-plays", value=PLAY)
        rest = found.filter(lambda v: v.song_id.isNull() & F.lit(graves))
        rest.map_values(lambda v: v.place).to("music-graves")

    return answer


# ---- 3: plays of two generations -------------------------------------------------------------------------------------

OLD = {"song_id": "string", "duration": "long"}
NEW = {"song_id": "string", "seconds": ("int", 0), "device": ("string", "unknown")}
ANY = {
    "song_id": "string", "duration": (["null", "long"], None), "seconds": (["null", "int"], None),
    "device": ("string", "unknown"),
}  # fmt: skip
PLAIN = Serdes.json("song_id string, duration long, device string")
HEARD = (
    {"song_id": "song-04", "duration": 61_500},
    {"song_id": "song-07", "seconds": 62, "device": "phone"},
    {"song_id": "song-20", "duration": 9_000},
    {"song_id": "song-20", "seconds": 0, "device": "car"},
    {"song_id": "song-04", "duration": 0},
    {"song_id": "song-11", "seconds": 240, "device": "unknown"},
)


def both_generations() -> Recording:
    """Return plays of programs old and new, one after another."""
    old, new = play_serde("music-plays-value", **OLD), play_serde("music-plays-value", **NEW)
    steps = [
        Piped("music-plays", f"fan-{n}", (new if "seconds" in play else old).serialize(play), 1_000 * n, raw=("value",))
        for n, play in enumerate(HEARD)
    ]

    def loop(record: Piped) -> Iterator[Due]:
        play: Any = HEARD[record.timestamp // 1_000]
        duration = play["seconds"] * 1_000 if "seconds" in play else play["duration"]
        value = {"song_id": play["song_id"], "duration": duration, "device": play.get("device", "unknown")}
        yield Due("plain-plays", record.key, value, record.timestamp)

    return looped(steps, ("plain-plays",), loop)


def any_age(fields: Mapping[str, Any], duration: Callable[[Any], Any]) -> Callable[[StreamsBuilder], None]:
    """Return an answer to the third exercise, or one with a mistake: it reads these fields."""

    def answer(builder: StreamsBuilder) -> None:
        plays = builder.stream("music-plays", value=play_serde(f"reader-{fields}", **fields))
        plays.map_values(lambda v: F.struct(v.song_id, duration(v).alias("duration"), v.device)).to(
            "plain-plays", value=PLAIN
        )

    return answer


def first_known(v: Any, factor: int = 1_000) -> Any:
    """Return the duration, or the seconds in its place."""
    return F.coalesce(v.duration, v.seconds.cast("long") * factor)


LAB = lab(
    "23-kafka-music-as-a-service",
    share_service=Judges(
        examine_share_service,
        {
            "runs where it is asked": share_service(routed=False),
            "only what is here": share_service(everywhere=False),
            "genres that begin alike": share_service(prefix="{genre}"),
            "nothing played": [share_service(nothing={"plays": 0, "share": 0.0}), share_service(nothing=KeyError)],
        },
    ),
    second_life=Runs(
        letters,
        wrong={
            "repaired twice": second_life(once_by=None),
            "a place is more than an offset": second_life(
                once_by=lambda record: dict(record.headers)[f"{PREFIX}offset"]
            ),
            "equal bytes taken for one letter": second_life(once_by=lambda record: (record.key, record.value)),
            "a play made up": second_life(read=play_made_up),
            "stopped at a letter": second_life(read=play_trusted),
            "nothing left of the others": second_life(graves=False),
        },
        tested=f"{len(LETTERS)} letters went in, three of them for the second time. What could be read became a play, "
        "once; of what could not, the place is noted.",
    ),
    any_age=Runs(
        both_generations,
        wrong={
            "old plays of no length": any_age(NEW, lambda v: v.seconds.cast("long") * 1_000),
            "seconds taken for milliseconds": any_age(ANY, partial(first_known, factor=1)),
            "no length where it is zero": any_age(
                {**ANY, "seconds": ("int", 0)},
                lambda v: F.when(v.seconds == 0, v.duration).otherwise(v.seconds.cast("long") * 1_000),
            ),
            "no device where it is not known": any_age({**ANY, "device": (["null", "string"], None)}, first_known),
        },
        tested=f"{len(HEARD)} plays of old and new programs went in, one after another, and each came out with its "
        "length and its device.",
    ),
    next_release=Lives("next_release", first_release, judge_next_release, wrong=WRONG),
)
