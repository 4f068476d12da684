"""The exercises of lab 14: who gets which share, what moves, who answers meanwhile, and what more executors bring."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from streamskit.broker import shared_broker
from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.asking import Asks, gives, like
from streamskit.course.labs.exercise import Exercise, Lab, Says, Verdict, right, unwritten, wrong
from streamskit.course.labs.misconceptions import Misconception
from streamskit.dsl.builder import StreamsBuilder
from streamskit.environment.processes import wait_until
from streamskit.queries.group.assignor import ClientState, assign_tasks
from streamskit.queries.instances import Instances
from streamskit.runtime.streams import KafkaStreams

PARTITIONS = 4
APPLICATION, TOPIC = "lab-elastic-check", "lab-elastic-check-trades"

# ---- 1: fair shares --------------------------------------------------------------------------------------------------

SIX = [f"0_{partition}" for partition in range(6)]
WHY_SHARES: dict[int, tuple[list[int], str, str]] = {
    4: ([0, 2, 2, 2], "as even as can be", "4 instances: shares differ by one at the most, so nobody is left without."),
    5: ([0, 0, 2, 2, 2], "as even as can be", "5 instances: shares differ by one at the most."),
    8: (
        [1] * 8,
        "more instances than partitions",
        "8 instances: there are six partitions to give away. A partition is never cut in two, so two get nothing.",
    ),
}


def fair(count: int) -> list[int]:
    """Return how many of six partitions each of so many instances has, fewest first."""
    names = [f"instance-{number}" for number in range(count)]
    shares = assign_tasks(SIX, [ClientState(name, name) for name in names])
    return sorted(list(shares.active.values()).count(name) for name in names)


def examine_shares(answer: Any) -> Verdict:
    """Judge shares by those that instances agree upon."""
    if not isinstance(answer, dict) or ... in answer.values():
        return unwritten("Put a list in place of each `...`.")
    expected = {count: fair(count) for count in (1, 2, 4, 5, 8)}
    for count, (shares, name, says) in WHY_SHARES.items():
        if answer.get(count) == shares:
            return wrong(says, name)
    if any(isinstance(each, list) and each != sorted(each) for each in answer.values()):
        return wrong("Put the numbers in order, the smallest first.", "another order")
    return Says(expected, "Six partitions were shared out among 1, 2, 4, 5 and 8 instances, as instances do.")(answer)


# ---- 2: what moved ---------------------------------------------------------------------------------------------------

Shared = Mapping[str, set[int]]


def moved(before: Shared, after: Shared) -> set[int]:
    """Return the partitions that another instance has than before."""
    owner = {partition: name for name, partitions in before.items() for partition in partitions}
    return {partition for name, partitions in after.items() for partition in partitions if owner[partition] != name}


def all_of_the_new(before: Shared, after: Shared) -> set[int]:
    """Return all partitions of instances whose share is another one."""
    return {partition for name, own in after.items() if own != before.get(name) for partition in own}


def given_away(before: Shared, after: Shared) -> set[int]:
    """Return what those that are still there have given away."""
    return {partition for name, own in before.items() if name in after for partition in own - after[name]}


def to_new_ones(before: Shared, after: Shared) -> set[int]:
    """Return what instances have that were not there before."""
    return {partition for name, own in after.items() if name not in before for partition in own}


def changes() -> list[tuple[Shared, Shared]]:
    """Return what instances had before and after some came or went, as they share it."""
    tasks = [f"0_{partition}" for partition in range(8)]
    shares: Shared = {"A": set(range(8))}
    pairs = list[tuple[Shared, Shared]]()
    for names in ("AB", "ABCD", "ABCDEF", "ACDE", "CD", "CX"):
        members = [
            ClientState(name, name, frozenset(tasks), frozenset(f"0_{each}" for each in shares.get(name, ())))
            for name in names
        ]
        owners = assign_tasks(tasks, members).active
        after: Mapping[str, set[int]] = {
            name: {int(task[2:]) for task, owner in owners.items() if owner == name} for name in names
        }
        pairs.append((shares, after))
        shares = after
    return pairs


# ---- 3, 4: live ------------------------------------------------------------------------------------------------------

SYMBOLS = [f"{letter}{number}" for letter in "ABCD" for number in range(1, 6)]


@cache
def counted_trades() -> tuple[Path, dict[str, int]]:
    """Let an application count trades once, and return where its state is, and the counts in its store `totals`."""
    broker, folder = shared_broker(), Path(mkdtemp(prefix="streamskit-lab-"))
    broker.delete_topics(TOPIC, missing_ok=True)
    broker.create_topics(TOPIC, partitions=PARTITIONS)
    trades = [(symbol, str(number)) for number, symbol in enumerate(SYMBOLS) for _ in range(number + 1)]
    broker.produce(TOPIC, trades)
    builder = StreamsBuilder()
    builder.stream(TOPIC).group_by_key().count("totals")
    streams = KafkaStreams(builder.build(), APPLICATION, broker.bootstrap_servers, state_dir=folder)
    streams.clean_up()
    with streams:
        streams.await_processed("60 seconds")
    return folder, {symbol: number + 1 for number, symbol in enumerate(SYMBOLS)}


@contextmanager
def no_instances() -> Iterator[tuple[Instances, dict[str, int]]]:
    """Yield instances of that application, none of which runs yet, and what they have to say."""
    folder, counts = counted_trades()
    with Instances(APPLICATION, shared_broker().bootstrap_servers, applications=folder) as instances:
        yield instances, counts


def hosted(instances: Instances) -> list[int]:
    """Return how many partitions each instance has whole, fewest first."""
    alive = [each for each in instances.instances() if each.alive]
    return sorted(sum(not task.is_restoring for task in each.tasks) for each in alive)


def examine_grow(answer: Any) -> Verdict:
    """Judge a function that starts instances, by what they host when it returns."""
    with no_instances() as (instances, _):
        for count, due in ((1, [4]), (2, [2, 2])):
            answer(instances, count)
            found = hosted(instances)
            if len(instances) != count:
                return wrong(
                    f"grow(instances, {count}) left {len(instances)} instances. It is to start as many as are missing, "
                    "and no more.",
                    "start what is missing",
                )
            if found != due:
                return wrong(
                    f"When grow(instances, {count}) returned, the instances had {found} partitions whole, not {due}. A "
                    "new instance joins first, then it restores, and only then a partition is its own: wait for that.",
                    "not waited",
                )
    return right(
        "With one instance and with two, every partition was whole where it belongs when your function returned."
    )


def examine_ask(answer: Any) -> Verdict:
    """Judge a function that asks every instance, while one of two goes."""
    with no_instances() as (instances, counts):
        servers = [instances.start(), instances.start()]
        wait_until(lambda: hosted(instances) == [2, 2], "two instances with two partitions each")
        for count in (2, 1):
            try:
                found = answer(instances)
            except StreamsKitError as error:
                return Verdict(False, f"With {count} of 2 instances left: {error}", cause=error)
            verdict = _answers(found, [str(server) for server in instances], counts)
            if verdict is not None:
                return verdict
            if count == 2:
                instances.stop(servers[0])
    return right(f"Each instance knew all {len(counts)} stocks, and so did the last one when the other had gone.")


def _answers(found: Any, servers: Sequence[str], counts: Mapping[str, int]) -> Verdict | None:
    """Judge what was asked; None if it is right."""
    if not isinstance(found, dict):
        return wrong(f"It has to return a dict, by instance; it returned {found!r}.")
    if sorted(map(str, found)) != sorted(servers):
        return wrong(
            f"{len(servers)} instances run, and the answers are those of {len(found)}. Instances come and go: ask "
            "those that run now.",
            "a list of yesterday",
        )
    if any(dict(rows) != counts for rows in found.values()):
        return wrong(
            "An answer is not whole. Each instance hosts a part of the store, and any of them answers for all of it "
            "when asked by a QueryClient.",
            "a part for the whole",
        )
    return None


# ---- 5: what more executors bring ------------------------------------------------------------------------------------


def batch_seconds(tasks: Sequence[float], slots: int, once: float) -> float:
    """Return how long a micro-batch takes: a slot that is free takes the next task, and `once` is not shared."""
    free = [0.0] * slots
    heapq.heapify(free)
    for seconds in tasks:
        heapq.heappush(free, heapq.heappop(free) + seconds)
    return once + max(free)


def in_turns(tasks: Sequence[float], slots: int, once: float) -> float:
    """Let every turn end with its slowest task."""
    return once + sum(max(tasks[start : start + slots]) for start in range(0, len(tasks), slots))


BATCH_MISTAKES = (
    Misconception(
        "everything shared",
        "The time that is spent once a batch was shared out, too. Planning and writing down offsets is no faster with "
        "more slots.",
        gives(lambda tasks, slots, once: batch_seconds([*tasks], slots, 0) + once / slots),
    ),
    Misconception(
        "tasks cut in pieces",
        "The tasks' seconds were divided evenly. A task runs in one slot from start to end, and the longest decides "
        "if it is longer than its share.",
        gives(lambda tasks, slots, once: once + sum(tasks) / slots),
    ),
    Misconception(
        "everything divided",
        "All seconds were divided by the slots. Neither tasks nor what is done once a batch can be cut so.",
        gives(lambda tasks, slots, once: (once + sum(tasks)) / slots),
    ),
    Misconception(
        "slots wait for each other",
        "Your slots take turns together: each waits until the slowest is done. A slot that is free takes the next "
        "task at once.",
        gives(in_turns),
    ),
    Misconception(
        "the longest alone",
        "Only the longest task counts in your answer. With fewer slots than tasks somebody does several.",
        gives(lambda tasks, slots, once: once + max(tasks)),
    ),
)


def batches() -> list[tuple[list[float], int, float]]:
    """Return batches with even tasks, with one that is long, and with fewer or more slots than tasks."""
    even, skewed, mixed = [0.5] * 4, [0.2, 2.0, 0.2, 0.2], [0.9, 0.3, 0.3, 0.4, 0.8, 0.1]
    return [(tasks, slots, 0.3) for tasks in (even, skewed, mixed) for slots in (1, 2, 3, 8)]


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = Lab(
    "14-elasticity",
    "Elasticity",
    (
        Exercise(
            "fair_shares",
            "Say how many of six partitions each instance has.",
            examine_shares,
            (
                "Shares are as even as possible: how much do two of them differ at the most?",
                "Six partitions among four: everybody gets one, and two are left.",
                "[6], [3, 3], [1, 1, 2, 2], and so on; with eight instances two have nothing.",
            ),
        ),
        Exercise(
            "changed_hands",
            "Find the partitions that moved.",
            Asks(
                like(moved, changes),
                "instances came and went, and shared eight partitions as instances do.",
                (
                    Misconception(
                        "who kept some",
                        "All partitions of instances with another share are in your answer, also those they had "
                        "before. A partition moves if another instance has it now.",
                        gives(all_of_the_new),
                    ),
                    Misconception(
                        "those of the dead",
                        "Partitions of instances that are gone are missing. They have moved as well.",
                        gives(given_away),
                    ),
                    Misconception(
                        "only to newcomers",
                        "Only what new instances have is in your answer. When one goes, its partitions move to those "
                        "that were there before.",
                        gives(to_new_ones),
                    ),
                ),
            ),
            (
                "For each partition two questions: who had it, who has it?",
                "Turn both dicts round: a dict with the instance of each partition is easy to compare.",
                "owner = {partition: name for name, own in before.items() for partition in own}; then those of "
                "`after` whose owner was another one",
            ),
        ),
        Exercise(
            "grow",
            "Start instances, and return when each has its share whole.",
            examine_grow,
            (
                "Two parts: start instances until there are enough; then wait.",
                "instances.instances() tells of each one whether it is alive and which tasks it has; "
                "task.is_restoring says whether a task is still filled. wait_until(condition, awaited) asks a "
                "function again and again, and says what did not come in two minutes.",
                "while len(instances) < count: instances.start(). Then wait until all alive together have four tasks, "
                "none restoring, and none of them has no task.",
            ),
        ),
        Exercise(
            "ask_everyone",
            "Ask every instance that runs for the whole store.",
            examine_ask,
            (
                "Iterating over `instances` gives those that run, each with a url.",
                "QueryClient(server.url) asks one of them; its store(...) has all().",
                'return {str(server): dict(QueryClient(server.url).store("totals").all()) for server in instances}',
            ),
        ),
        Exercise(
            "seconds_of_a_batch",
            "Compute how long a micro-batch takes with so many slots.",
            Asks(
                like(batch_seconds, batches),
                "batches with even tasks and with uneven ones were computed for 1, 2, 3 and 8 slots.",
                BATCH_MISTAKES,
            ),
            (
                "Keep for each slot when it is free again. Who takes the next task?",
                "free = [0] * slots. A task goes to the slot that is free first, and makes it busy for its seconds.",
                "for seconds in tasks: slot = free.index(min(free)); free[slot] += seconds. At the end: once + "
                "max(free)",
            ),
        ),
    ),
)
