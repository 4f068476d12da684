"""The mission of lab 16: customers go on asking while an instance dies, and each answer says whose it is."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

from streamskit.common.errors import StreamsError
from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.exercises.elasticity import COUNTS, PARTITIONS, SYMBOLS, count_trades
from streamskit.course.labs.missions import Site
from streamskit.environment.processes import wait_until
from streamskit.queries.client.query_client import QueryClient
from streamskit.queries.instances import Instances

UNKNOWN = "Z9"
"""A symbol that nobody has traded."""
BEFORE, AFTER = SYMBOLS[::2], [*SYMBOLS, UNKNOWN]
"""What customers ask for before an instance dies, and after it."""

Triple = tuple[str, int | None, str]


def three_instances(site: Site) -> None:
    """Let three instances share a store of four partitions, with a standby copy of each."""
    site.create_topics(trades=PARTITIONS)
    count_trades(site.application_id, site.topic("trades"), site.folder)
    instances = Instances(
        site.application_id,
        site.bootstrap_servers,
        standby_replicas=1,
        session_timeout="15 seconds",  # longer than the questions last: the group goes on believing in the dead one
        applications=site.folder,
    )
    site.on_close(instances.stop)
    with ThreadPoolExecutor(3) as pool:
        servers = list(pool.map(lambda _: instances.start(), range(3)))
    wait_until(lambda: _settled(instances), "three instances with all replicas")
    site.props |= {"instances": instances, "urls": [server.url for server in servers], "owners": {}}
    site.props["questions"] = partial(questions, site)


def _settled(instances: Instances) -> bool:
    alive = [each for each in instances.instances() if each.alive]
    tasks = [task for each in alive for task in each.tasks]
    places = {(task.partition, task.role) for task in tasks}
    return len(alive) == 3 and len(tasks) == len(places) == 2 * PARTITIONS and not any(t.is_restoring for t in tasks)


def questions(site: Site) -> Iterator[str]:
    """Yield what customers ask for; on the way the instance at the first of the addresses dies."""
    yield from BEFORE
    with QueryClient(site.urls) as client:
        site.owners.update({symbol: client.metadata_for_key("totals", symbol).active_host for symbol in AFTER})
    first = next(iter(server for server in site.instances if server.url == site.urls[0]), None)
    if first is not None:  # who asks a second time meets two instances
        site.instances.kill(first)
    yield from AFTER


def judge_through_a_death(site: Site, returned: Any) -> Verdict:
    """Judge the answers by what was counted, and by who had each key when the instance died."""
    if not isinstance(returned, list) or any(not isinstance(each, list | tuple) or len(each) != 3 for each in returned):
        return wrong(f"It has to return a list of triples (symbol, count, role); it returned {returned!r}.")
    asked = [*BEFORE, *AFTER]
    if not site.owners or len(returned) < len(asked):
        return mistaken("questions left open", answers=len(returned))
    if [symbol for symbol, _, _ in returned] != asked:
        return wrong("The answers have to come in the order of the questions, one for each.")
    answers = {symbol: (count, role) for symbol, count, role in returned[len(BEFORE) :]}
    if unanswered := [symbol for symbol, count, _ in returned if count is None and symbol != UNKNOWN]:
        return mistaken("unanswered", count=len(unanswered))
    if answers[UNKNOWN][0] is None:
        return mistaken("no trades taken for no answer", symbol=UNKNOWN)
    if off := [symbol for symbol, count, _ in returned if count != COUNTS.get(symbol, 0)]:
        return wrong(f"{off[0]} was traded {COUNTS.get(off[0], 0)} times; your answer is different.")
    return _by_role(site, returned, {symbol: role for symbol, (_, role) in answers.items()})


def _by_role(site: Site, returned: list[Triple], roles: dict[str, str]) -> Verdict:
    dead = site.urls[0]
    copies = {symbol for symbol, owner in site.owners.items() if owner is not None and owner.url == dead}
    due = {symbol: "standby" if symbol in copies else "active" for symbol in roles}
    if set(roles.values()) == {"active"}:
        return mistaken("a copy taken for the owner", count=len(copies))
    if roles != due or any(role != "active" for _, _, role in returned[: len(BEFORE)]):
        return wrong(
            "Some answers name a role that an instance had at another time, or none at all: it is active or standby. "
            "Answer each question, and ask who answered it, before you take the next one: list(site.questions()) takes "
            "all of them, and then the instance is dead before you have answered the first."
        )
    return right(
        f"{len(returned)} questions were answered, {len(AFTER)} of them after an instance had died; {len(copies)} "
        "answers came from a standby copy, and said so."
    )


# ---- wrong answers ---------------------------------------------------------------------------------------------------


def asked(
    addresses: Callable[[list[str]], list[str]] = lambda urls: urls,
    last: int | None = None,
    role: str = "",
    nothing: int | None = 0,
    gives_up: bool = False,
) -> Callable[[Site], list[Triple]]:
    """Return an answer that asks some of the addresses, up to some question, and tells the role or makes it up."""

    def answer(site: Site) -> list[Triple]:
        client, answers = QueryClient(addresses(site.urls), retry="2 seconds"), list[Triple]()
        totals = client.store("totals")
        for symbol in islice(site.questions(), last):
            try:
                count = totals.get(symbol)
            except StreamsError:
                if not gives_up:
                    raise
                answers.append((symbol, None, ""))
                continue
            answers.append((symbol, nothing if count is None else count, role or totals.answered_by.roles[0]))
        return answers

    return answer


ERRORS = {"No instance answers at": "one address"}
"""What a client says whose only instance is dead."""
