"""The mission of lab 23: the next release of a service goes out while listeners ask, and then an instance dies."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from typing import Any
from urllib.parse import quote

import httpx

from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.exercises import kafka_music_as_a_service_routes as routes
from streamskit.course.labs.exercises.elasticity_application import PARTITIONS
from streamskit.course.labs.exercises.elasticity_mission import Watched
from streamskit.course.labs.missions import Site
from streamskit.dsl.builder import StreamsBuilder
from streamskit.environment.processes import wait_until
from streamskit.queries.metadata import HostInfo

COUNTS = {f"{genre}/song-{n:02}": 3 * n + len(genre) for genre in ("Folk", "Folk Rock", "Jazz") for n in range(1, 8)}
"""How often each song was played."""
BETWEEN_CALLS = 0.03
TO_RECOVER = 10.0
"""Seconds: how long a listener waits for the next call, and how long after a death every song has to be told of."""


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
    """Ask for the plays of one song after another, at the addresses on a list, and note what they are told.

    Args:
        front: the list, which may change at any time.
    """

    def __init__(self, front: list[str]) -> None:
        self.front, self.calls = front, Counter[str]()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ask no more."""
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
    """Judge by what listeners were told, by who runs, and by what is left when one of them dies."""
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
        return wrong(f"{calls['wrong']} of {calls.total()} calls were answered, and not rightly.")
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
    return right(f"{so_far}; then one of the two died, and the other told the share of each of {len(due)} songs.")


# ---- wrong answers ---------------------------------------------------------------------------------------------------


def released(count: int = 2, *, starts: int = 2, last: bool = True, listed: str = "in time") -> Callable[[Site], None]:
    """Return an answer that replaces old instances, or leaves something of that out.

    Args:
        count: how many old instances are stopped.
        starts: how many new ones are started.
        last: whether the new ones have two copies of everything at the end.
        listed: when the list of addresses is changed: "in time", "late" or "never".
    """

    def answer(site: Site) -> None:
        instances = site.instances
        for number, old in enumerate(site.old[:count]):
            new = [instances.start_next().url] if number < starts else []
            wait_until(partial(_is_elsewhere, instances, old), "a copy of everything")
            changed = [url for url in site.front if url != old.url] + new
            if listed == "in time":
                site.front[:] = changed
            instances.stop(old)
            if listed == "late":
                wait_until(lambda: site.listeners.calls["nobody there"], "a listener")
                site.front[:] = changed
        if last:
            wait_until(lambda: min(instances.copies().values()) == 2, "two copies of everything")

    return answer


def _is_elsewhere(instances: Releases, old: HostInfo) -> bool:
    return len(instances.copies(without=old)) == PARTITIONS


def stopped_first(site: Site) -> None:
    """Stop both old instances, and start new ones then."""
    for old in site.old:
        site.instances.stop(old)
    site.front[:] = [site.instances.start_next().url for _ in site.old]


def second_started_last(site: Site) -> None:
    """Let one new instance take over from both old ones, and start the other at the end."""
    instances = site.instances
    new = instances.start_next()
    for old in site.old:
        wait_until(partial(_is_elsewhere, instances, old), "a copy of everything")
        site.front[:] = [url for url in site.front if url not in (old.url, new.url)] + [new.url]
        instances.stop(old)
    site.front.append(instances.start_next().url)


WRONG = {
    "an old release left": released(1, last=False),
    "nobody to spare": released(starts=1, last=False),
    "listeners sent to nobody": [released(listed="late"), released(listed="never")],
    "gone before the others were ready": stopped_first,
    "not ready for a death": second_started_last,
}
