"""How the answers of lab 15 are judged: what goes in and has to come out, and signs of typical mistakes."""

import random
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import functions as F

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.exercise import Verdict, mistaken, right, topology_of, wrong
from streamskit.course.labs.exercises import live
from streamskit.course.labs.loops import Due, looped
from streamskit.course.labs.parts import Typical
from streamskit.course.labs.recording import Batch, Costume, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.runtime.streams import KafkaStreams
from streamskit.serdes import Serdes

LONG = Serdes.long()

Answer = Callable[[StreamsBuilder], None]

# ---- 1: a standby ----------------------------------------------------------------------------------------------------

Update = tuple[str, Any, int]
BALANCES = {"a1": 100, "a2": 130, "a-old": 120, "b1": 50, "d1": 75}
"""What the recording has for values, and the story for balances."""


def recorded_changelog() -> list[Update]:
    """Return what Kafka Streams wrote to the changelog of a table."""
    keys = {letter: f"account-{number}" for number, letter in enumerate("abcd")}
    dress = Costume(keys=keys, value=lambda topic, value: BALANCES.get(value))
    recording = Recording.of("ktable-source-changelog", dress, changelogs=True)
    return [(row.key, row.value, row.timestamp or 0) for row in recording.outputs["oracle-rows-changelog"]]


def changelog() -> list[Update]:
    """Return that changelog and more: a balance of nothing, updates out of order, and an account closed twice."""
    more = [("1", 20, 90), ("0", 0, 95), ("3", None, 85), ("3", None, 99), ("1", 40, 70), ("0", None, 96)]
    return recorded_changelog() + [(f"account-{number}", balance, time) for number, balance, time in more]


def standby(
    wins: Callable[[int, int], bool] = lambda new, kept: True,
    deletes: Callable[[Any], bool] = lambda value: value is None,
    passed_over: bool = False,
    tells_all: bool = False,
    updates: Callable[[], list[Update]] = changelog,
) -> Recording:
    """Return what a standby makes of a changelog.

    Args:
        wins: whether an update counts, by its timestamp and by that of the row.
        deletes: which values delete a row.
        passed_over: whether deletions are.
        tells_all: whether an account is told of that is closed already.
        updates: makes the changelog.
    """
    rows: dict[str, Any] = {}
    times: dict[str, int] = {}

    def loop(record: Piped) -> Iterator[Due]:
        if not wins(record.timestamp, times.get(record.key, -1)) or (passed_over and record.value is None):
            return
        last, times[record.key] = rows.pop(record.key, None), record.timestamp
        if not deletes(record.value):
            rows[record.key] = record.value
        elif last is not None or tells_all:
            yield Due("closed-accounts", record.key, last, record.timestamp)

    steps = [Piped("bank-balances-changelog", *update) for update in updates()]
    return looped(steps, ["closed-accounts"], loop, {"copy": rows})


# ---- 2: after compaction ---------------------------------------------------------------------------------------------

ACCOUNT = Serdes.json("branch string, balance long")

LOG = (
    "1 Oslo 40", "2 Oslo 70", "1 Oslo 55", "3 Turku 20", "4 Turku 65", "2 Oslo 75", "4", "3 Turku 30", "1 Turku 50",
    "5 Oslo 10", "2", "5 Oslo 15",
)  # fmt: skip
"""The accounts, each with its branch and its balance then; those without were closed."""
COMPACTED = 6
"""To how many records of the log compaction has come."""


def branch_totals() -> Recording:
    """Return the totals of branches, by a log of which compaction has come to the first half."""
    log = [update.split() for update in LOG]
    last = {update[0]: number for number, update in enumerate(log[:COMPACTED])}
    steps, rows = list[Piped](), dict[str, Any]()
    for number, (account, *now) in enumerate(log):
        row = {"branch": now[0], "balance": int(now[1])} if now else None
        rows[account] = row
        if number >= COMPACTED or last[account] == number:
            steps.append(Piped("accounts", f"account-{account}", row, number * 1_000))
    totals = dict.fromkeys(("Oslo", "Turku"), 0)
    for row in filter(None, rows.values()):
        totals[row["branch"]] += row["balance"]
    return looped([Batch(tuple(steps))], [], lambda record: (), {"branch-totals": totals})


def totalled(subtracts: bool = True, open_only: bool = False, by_branch: bool = True) -> Answer:
    """Return the answer that adds up a table: what was there before taken out again or not, closed accounts or not."""

    def answer(builder: StreamsBuilder) -> None:
        if open_only:
            accounts = builder.stream("accounts", value=ACCOUNT).filter(lambda v: v.isNotNull()).to_table()
        else:
            accounts = builder.table("accounts", value=ACCOUNT)
        grouped = accounts.group_by(lambda k, v: (v.branch if by_branch else k, v.balance))
        grouped.reduce(add, subtract if subtracts else lambda total, old: total, "branch-totals")

    return answer


def added_as_events(builder: StreamsBuilder) -> None:
    """Add up all balances that came."""
    accounts = builder.stream("accounts", value=ACCOUNT).filter(lambda v: v.isNotNull())
    accounts.map(lambda k, v: (v.branch, v.balance)).group_by_key().aggregate(lambda v: F.sum(v), "branch-totals")


def add(total: int, new: int) -> int:
    """Add a value to a sum."""
    return total + new


def subtract(total: int, old: int) -> int:
    """Take a value out of a sum."""
    return total - old


# ---- 3: what goes on from what ---------------------------------------------------------------------------------------

COPIES = {
    "the driver is killed and starts again": "checkpoint",
    "an executor dies": "checkpoint",
    "an instance without a disk is started": "changelog",
    "an instance with its rows on the disk starts again": "disk and changelog",
    "a standby takes over": "nothing",
}
TYPICAL_COPIES: dict[str, Typical] = {
    "computing and answering": {
        "the driver is killed and starts again": "changelog",
        "an executor dies": "changelog",
        "an instance without a disk is started": "checkpoint",
    },
    "state in memory is gone": {"an executor dies": "nothing"},
    "a copy on the disk is kept": {"an instance with its rows on the disk starts again": "changelog"},
    "the world went on": {"an instance with its rows on the disk starts again": "nothing"},
    "a standby has read it already": {"a standby takes over": "changelog"},
}


# ---- 4: add up what may come twice -----------------------------------------------------------------------------------

Deposit = tuple[str, dict[str, int]]


def deposited(key: Callable[[str, dict[str, int]], object] = lambda account, deposit: deposit["id"]) -> Recording:
    """Return what was deposited, if `key` says which deposits are the same one."""
    once = {key(account, deposit): (account, deposit) for account, deposit in twice_in_part()}
    sums: dict[str, int] = {}
    for account, deposit in once.values():
        sums[account] = sums.get(account, 0) + deposit["amount"]
    steps = (Piped("deposits", *deposit, number * 1_000) for number, deposit in enumerate(twice_in_part()))
    return looped([Batch(tuple(steps))], [], lambda record: (), {"deposited": sums})


def neighbours_once() -> Recording:
    """Leave out what is as the one before."""
    runs, last = 0, None

    def number_of_run(account: str, deposit: dict[str, int]) -> int:
        nonlocal runs, last
        runs, last = runs + ((account, deposit) != last), (account, deposit)
        return runs

    return deposited(number_of_run)


def every_one() -> Recording:
    """Add up all that came."""
    numbers = count()
    return deposited(lambda account, deposit: next(numbers))


def twice_in_part() -> list[Deposit]:
    """Return deposits: a batch was written again whole, another in part, and the last one came twice."""
    chance = random.Random(151)
    first, second, third = (
        [(f"account-{chance.randrange(3)}", {"id": 10 * batch + n, "amount": chance.choice([5, 10])}) for n in range(4)]
        for batch in range(3)
    )
    return [*first, *first[2:], *second, *second, *third, third[-1]]


# ---- 5: never twice --------------------------------------------------------------------------------------------------


def balances(builder: StreamsBuilder) -> None:
    """The balance of each account, as a store and as a topic."""
    deposits = builder.stream("lab-deposits", value=LONG)
    totals = deposits.group_by_key().aggregate(lambda v: F.sum(v), materialized="balances")
    totals.to_stream().to("lab-balances", value=LONG)


def examine_never_twice(answer: Any) -> Verdict:
    """Judge settings by an application whose last batch has to run again."""
    options = answer()
    if not isinstance(options, dict):
        return wrong(f"It has to return a dict of settings of KafkaStreams; it returned {options!r}.")
    try:
        before, after, table = _run_again(options)
    except (StreamsKitError, TypeError) as error:
        return Verdict(False, f"It does not run with these settings: {error}", cause=error)
    if after > before:
        return mistaken("at least once", again=after - before)
    return right(f"The last batch ran again, wrote nothing twice, and the {len(table)} balances are right.")


def _run_again(options: dict[str, Any]) -> tuple[int, int, dict[str, int]]:
    """Return how many records are in the topic before and after the last batch runs again, and the balances."""
    with live.topics(lab_deposits=1, lab_balances=1) as broker, TemporaryDirectory(prefix="streamskit-lab-") as folder:
        options = options | {"state_dir": folder}

        def application() -> KafkaStreams:
            return KafkaStreams(topology_of(balances), "lab-never-twice", broker.bootstrap_servers, **options)

        def written() -> int:
            return len(broker.consume("lab-balances", value=LONG))

        application().clean_up()
        broker.produce("lab-deposits", [("ann", 5), ("bob", 7), ("ann", 3)], value=LONG)
        try:
            with application() as streams:
                streams.await_processed("60 seconds")
                before = written()
            _forget_last_commit(streams.folder / "0" / "commits")
            with application() as streams:
                streams.await_processed("60 seconds")
                return before, written(), dict(streams.store("balances").all())
        finally:
            application().clean_up()


def _forget_last_commit(commits: Path) -> None:
    last = max((file for file in commits.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
    for file in (last, last.with_name(f".{last.name}.crc")):
        file.unlink(missing_ok=True)
