"""Lab 23: a route that runs where its data is, letters that get a second life, and plays of two generations."""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any
from urllib.parse import quote

import httpx

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.exercise import Judges, Runs, Verdict, mistaken, right, wrong
from streamskit.course.labs.exercises import kafka_music_as_a_service_routes as routes
from streamskit.course.labs.exercises.elasticity import PARTITIONS, Watched
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.local_instances import LocalInstances
from streamskit.course.labs.loops import Due, looped
from streamskit.course.labs.missions import Lives, Site
from streamskit.course.labs.recording import Batch, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.environment.processes import wait_until
from streamskit.queries.metadata import HostInfo
from streamskit.queries.rest_service import RestService
from streamskit.serdes import SchemaRegistry, Serde, Serdes

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
    """Query three instances for the share of each song, each time through one that does not have it."""
    service = answer()
    if not isinstance(service, RestService):
        return wrong(f"It has to return the RestService; it returned {service!r}.")
    try:
        instances = LocalInstances(routes.STORE, COUNTS, service=service)
    except StreamsKitError as error:
        return wrong(str(error))
    with instances, httpx.Client(trust_env=False, timeout=10) as client:
        asked = {key: instances.owner(key) for key in (*COUNTS, *NEVER_PLAYED)}
        urls = {key: instances.urls[(owner + 1) % len(instances.urls)] for key, owner in asked.items()}
        said = {key: client.get(f"{url}/share/{quote(key)}") for key, url in urls.items()}
        ran = {key: answer.headers.get("streamskit-answered-by", "").split(" ")[0] for key, answer in said.items()}
    if not any(ran.values()) and all(answer.status_code == 404 for answer in said.values()):
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
            f"{len(said)} calls for songs went to an instance without them. Each function ran where the song "
            "is, and had the plays of the whole genre; a song that nobody has played got a 404."
        )
    if told == here:
        return mistaken("only what is here")
    if all(told[key] == shares(COUNTS)[key] for key in COUNTS if not key.startswith("Folk/")):
        return mistaken("genres that begin alike")
    off = next(key for key, due in shares(COUNTS).items() if told[key] != due)
    return wrong(f"/share/{off} gave {told[off]}, and should give {shares(COUNTS)[off]}.")


# ---- 2: dead letters -------------------------------------------------------------------------------------------------

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
    ("cem", 1, 10, b"another text"),  # a second letter for a place that was already handled
    ("fay", 0, 15, b"[4]"),
    ("eve", 1, 14, AGAIN),
)
"""The listener, the partition, the offset and the bytes of each record."""


def letters() -> Recording:
    """Return dead letters, and what has to happen to each."""
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
    """Return the place of a letter's original record, such as play-events-0@8."""
    said = {name.removeprefix(PREFIX): value.decode() for name, value in headers}
    return f"{said['topic']}-{said['partition']}@{said['offset']}"


def play_in(data: bytes) -> dict[str, Any] | None:
    """Return the play that somebody wrote as JSON; None where it is none."""
    try:
        play = json.loads(data)
        return {"song_id": play["song_id"], "duration": play["duration"]}
    except (ValueError, KeyError, TypeError):
        return None


# ---- 3: plays of two generations -------------------------------------------------------------------------------------

OLD = {"song_id": "string", "duration": "long"}
NEW = {"song_id": "string", "seconds": ("int", 0), "device": ("string", "unknown")}
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


# ---- 4: the next release ---------------------------------------------------------------------------------------------


COUNTS = {f"{genre}/song-{n:02}": 3 * n + len(genre) for genre in ("Folk", "Folk Rock", "Jazz") for n in range(1, 8)}
"""How often each song was played."""
BETWEEN_CALLS = 0.03
TO_RECOVER = 10.0
"""Seconds: how long a listener waits for the next call, and how long after a death every song has to have an answer."""


def shares(counts: dict[str, int]) -> dict[str, dict[str, Any]]:
    """Return the plays of each song, and their part of the plays of its genre."""
    totals = Counter[str]()
    for key, plays in counts.items():
        totals[key.partition("/")[0]] += plays
    return {key: {"plays": plays, "share": plays / totals[key.partition("/")[0]]} for key, plays in counts.items()}


class Releases(Watched):
    """Instances of which each runs one of two releases of the routes."""

    def start_next(self) -> HostInfo:
        """Start an instance of the next release, and return where it answers."""
        self._options = [option.replace(":first", ":second") for option in self._options]
        return self.start()

    def copies(self, without: HostInfo | None = None) -> Counter[int]:
        """Return how many whole copies of each partition there are, those of an instance aside."""
        return Counter(
            task.partition
            for each in self.instances()
            if each.alive and each.server != str(without)
            for task in each.tasks
            if not task.is_restoring
        )


class Listeners:
    """Query the plays of one song after another, at the addresses on a list, and note the answers.

    Args:
        front: the list, which may change at any time.
    """

    def __init__(self, front: list[str]) -> None:
        self.front, self.calls = front, Counter[str]()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop querying."""
        self._done.set()
        self._thread.join(60)

    def _ask_on(self) -> None:
        with httpx.Client(trust_env=False, timeout=10) as client:
            for number, key in enumerate(cycle(COUNTS)):
                if self._done.wait(BETWEEN_CALLS):
                    return
                front = list(self.front)
                self.calls[self._heard(client, front[number % len(front)], key) if front else "nobody there"] += 1

    def _heard(self, client: httpx.Client, url: str, key: str) -> str:
        try:
            answer = client.get(f"{url}/plays/{quote(key)}")
        except httpx.HTTPError:
            return "nobody there" if url in self.front else "taken off the list meanwhile"
        if answer.status_code == 503:
            return "in a moment"
        return "right" if answer.status_code == 200 and answer.json() == {"plays": COUNTS[key]} else "wrong"


def first_release(site: Site) -> None:
    """Let two instances of the first release share the counts, and listeners ask both."""
    site.create_topics(plays=PARTITIONS)
    site.broker.produce(site.topic("plays"), [(key, "play") for key, plays in COUNTS.items() for _ in range(plays)])
    builder = StreamsBuilder()
    builder.stream(site.topic("plays")).group_by_key().count(routes.STORE)
    with site.application(builder.build()) as streams:
        streams.await_processed("60 seconds")
    instances = Releases(
        site.application_id,
        site.bootstrap_servers,
        standby_replicas=1,
        session_timeout="15 seconds",  # longer than it takes to judge: the group goes on believing in a dead one
        applications=site.folder,
        rest_service=f"{routes.__name__}:first",
    )
    site.on_close(instances.stop)
    with ThreadPoolExecutor(2) as pool:
        servers = list(pool.map(lambda _: instances.start(), range(2)))
    wait_until(lambda: set(instances.copies().values()) == {2}, "two copies of every partition")
    site.props |= {"instances": instances, "old": servers, "front": [server.url for server in servers]}
    site.props["listeners"] = Listeners(site.front)
    site.on_close(site.listeners.close)


def judge_next_release(site: Site, returned: Any) -> Verdict:
    """Judge by the answers to listeners, by which instances run, and by what is left when one of them dies."""
    site.listeners.close()
    instances, calls = site.instances, site.listeners.calls
    running = list(instances)
    if set(running) & set(site.old):
        return mistaken("an old release left")
    if len(running) < 2:
        return mistaken("nobody to spare", count=len(running))
    if not all(instances.covered[server] for server in site.old):
        return mistaken("gone before the others were ready")
    if calls["nobody there"] or set(site.front) != {server.url for server in running}:
        return mistaken("listeners sent to nobody", calls=calls["nobody there"])
    if calls["wrong"]:
        return wrong(f"{calls['wrong']} of {calls.total()} calls got a wrong answer.")
    instances.kill(running[0])
    if not instances.covered[running[0]]:
        return mistaken("not ready for a death")
    return _after_a_death(running[1], f"{calls['right']} calls were answered rightly while the release went out")


def _after_a_death(server: HostInfo, so_far: str) -> Verdict:
    told: dict[str, Any] = {}

    def all_told() -> bool:
        for key in COUNTS.keys() - told.keys():
            answer = client.get(f"/share/{quote(key)}")
            if answer.status_code != 503:
                told[key] = answer.json() if answer.status_code == 200 else answer.status_code
        return len(told) == len(COUNTS)

    with httpx.Client(base_url=server.url, trust_env=False, timeout=10) as client:
        try:
            wait_until(all_told, "an answer for every song", seconds=TO_RECOVER)
        except TimeoutError:
            return wrong(f"After an instance had died, {len(COUNTS) - len(told)} songs got no answer but 503.")
    due = shares(COUNTS)
    if off := [key for key in due if told[key] != due[key]]:
        return wrong(f"After an instance had died, {off[0]} got the answer {told[off[0]]}, not {due[off[0]]}.")
    return right(f"{so_far}; then one of the two died, and the other gave the share of each of {len(due)} songs.")


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "23-kafka-music-as-a-service",
    share_service=Judges(
        examine_share_service,
    ),
    second_life=Runs(
        letters,
        tested=f"{len(LETTERS)} letters went in, three of them for the second time. Readable ones became a play, once; "
        "for the others, the place is noted.",
    ),
    any_age=Runs(
        both_generations,
        tested=f"{len(HEARD)} plays of old and new programs went in, one after another, and each came out with its "
        "length and its device.",
    ),
    next_release=Lives("next_release", first_release, judge_next_release),
)
