"""The exercises of lab 15: what is read again after a fault, by which process, and which of it comes twice."""

import random
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

from pyspark.sql import functions as F

from streamskit.broker import EmbeddedBroker
from streamskit.common.errors import BrokerError
from streamskit.course.labs.exercise import Runs, Verdict, mistaken, right, wrong
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, WrongLoop, looped
from streamskit.course.labs.missions import ID_IS_TAKEN, Lives, Site, is_up
from streamskit.course.labs.parts import SaysEach, Typical
from streamskit.course.labs.recording import Batch, Costume, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.runtime.states import State
from streamskit.runtime.streams import KafkaStreams
from streamskit.serdes import Serdes
from streamskit.topology import Topology

# ---- 1: a standby ----------------------------------------------------------------------------------------------------

Update = tuple[str, Any, int]
BALANCES = {"a1": 100, "a2": 130, "a-old": 120, "b1": 50, "d1": 75}
"""Balances in the story by the values of the recording."""


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
        passed_over: whether deletions are skipped.
        tells_all: whether an account that is already closed is reported again.
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


LOG = (
    "1 Oslo 40", "2 Oslo 70", "1 Oslo 55", "3 Turku 20", "4 Turku 65", "2 Oslo 75", "4", "3 Turku 30", "1 Turku 50",
    "5 Oslo 10", "2", "5 Oslo 15",
)  # fmt: skip
"""The accounts, each with its branch and its balance at that time; those without a balance were closed."""
COMPACTED = 7
"""How many records of the log have been compacted: the last of them closes an account of which nothing else is left."""


def branch_totals() -> Recording:
    """Return the totals of branches, from a log whose first half has been compacted."""
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
    """Leave out deposits equal to the previous one."""
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
    """Return deposits: one batch was written again in full, another in part, and the last deposit came twice.

    Their numbers don't rise: a program that remembers only the largest one loses some.
    """
    chance = random.Random(151)
    numbers = iter(random.Random(5).sample(range(10, 100), 12))
    first, second, third = (
        [(f"account-{chance.randrange(3)}", {"id": next(numbers), "amount": chance.choice([5, 10])}) for _ in range(4)]
        for _ in range(3)
    )
    return [*first, *first[2:], *second, *second, *third, third[-1]]


# ---- 5, 6: missions --------------------------------------------------------------------------------------------------


LONG = Serdes.long()
BEFORE = [(f"account-{n % 4}", 10 + n) for n in range(20)]
AFTER = [(f"account-{n % 5}", 1000 + n) for n in range(10)]


# ---- through an outage -----------------------------------------------------------------------------------------------

DEPOSIT = Serdes.json("id long, amount long")
DEPOSITS = [(f"account-{number % 3}", {"id": number, "amount": 10 * (number % 9) + 7}) for number in range(12)]
"""Each account gets one amount twice, by deposits of different numbers."""
NEWS_LOST = 5
"""The id of the deposit that the broker still accepts, but dies before it can acknowledge it."""

OUTAGE_SECONDS = 2.0
"""How long the broker stays down before it is started again; it answers a few seconds after that."""


class Sender:
    """Sends deposits to a broker, which dies and comes back.

    Args:
        site: the site whose broker it is.
    """

    def __init__(self, site: Site) -> None:
        self._site, self._begun = site, False
        self._repair = Thread(target=self._bring_back, daemon=True)

    def __call__(self, account: str, deposit: dict[str, int]) -> None:
        """Send a deposit.

        Raises:
            BrokerError: the broker has not acknowledged it.
        """
        broker = self._site.broker
        if broker.is_running and not self._repair.is_alive():
            broker.produce(self._site.topic("deposits"), [(account, deposit)], value=DEPOSIT)
            if deposit["id"] != NEWS_LOST or self._begun:
                return
            self._begun = True
            broker.kill()
            self._repair.start()
        raise BrokerError(f"The broker does not answer: nobody knows whether deposit {deposit['id']} has arrived.")

    def await_the_end(self) -> None:
        """Wait until the broker is back, if it went."""
        if self._begun:
            self._repair.join(120)

    def _bring_back(self) -> None:
        time.sleep(OUTAGE_SECONDS)
        self._site.broker.start()


def a_broker_that_fails(site: Site) -> None:
    """Give the site its own broker and a sender of deposits; the broker dies in the middle of them."""
    shared, site.broker = site.broker, EmbeddedBroker(heap="256m")
    site.broker.start()
    site.create_topics(deposits=1, balances=1)
    sender = Sender(site)
    site.props |= {"deposits": DEPOSITS, "send": sender}

    def put_away() -> None:
        sender.await_the_end()
        for streams in site.running():
            streams.close()
        site.broker.stop()
        site.broker = shared

    site.on_close(put_away)


def judge_through_an_outage(site: Site, streams: KafkaStreams) -> Verdict:
    """Judge by what is on the broker afterwards: every deposit, and the balances with each of them counted once."""
    site.send.await_the_end()
    sent = {deposit["id"] for deposit in site.broker.consume(site.topic("deposits"), value=DEPOSIT)["value"]}
    if missing := [deposit["id"] for _, deposit in DEPOSITS if deposit["id"] not in sent]:
        return mistaken("deposits lost", missing=", ".join(map(str, missing)))
    if not is_up(streams):
        return mistaken("gave up in the outage", state=streams.state.name)
    streams.await_processed("60 seconds")
    updates = site.broker.consume(site.topic("balances"), value=LONG)
    found = dict(zip(updates["key"], updates["value"], strict=True))
    due = sums([(account, deposit["amount"]) for account, deposit in DEPOSITS])
    if found == sums([*{(account, deposit["amount"]) for account, deposit in DEPOSITS}]):
        return mistaken("equal is not the same")
    if any(found.get(account, 0) > due[account] for account in due):
        return mistaken("counted twice", id=NEWS_LOST)
    if found != due:
        return wrong(f"The last balances in the topic are {found}, and should be {due}.")
    return right(
        f"The broker was killed after it had stored deposit {NEWS_LOST}, and came back. It has all {len(DEPOSITS)} "
        f"deposits, each counts once, and the last balances of {len(due)} accounts are right."
    )


# ---- move house ------------------------------------------------------------------------------------------------------


def bank(site: Site) -> Topology:
    """The balance of each account, as a store and as a topic."""
    builder = StreamsBuilder()
    deposits = builder.stream(site.topic("deposits"), value=LONG).group_by_key()
    deposits.aggregate(lambda v: F.sum(v), materialized="balances").to_stream().to(site.topic("balances"), value=LONG)
    return builder.build()


def a_bank_that_runs(site: Site) -> None:
    """Let a bank run with its state in the folder `old`; the folder `new` is empty."""
    site.create_topics(deposits=2, balances=2)
    site.props |= {"old": site.folder / "old", "new": site.folder / "new"}
    for folder in (site.old, site.new):
        folder.mkdir()
    site.broker.produce(site.topic("deposits"), BEFORE, value=LONG)
    streams = site.props["streams"] = site.application(bank(site), state_dir=site.old)
    streams.start()
    streams.await_processed("60 seconds")
    site.props["written"] = len(site.broker.consume(site.topic("balances")))


def judge_move_house(site: Site, returned: KafkaStreams) -> Verdict:
    """Judge a bank that has moved: it must need nothing from the old folder, and resume where it was."""
    if returned is site.streams or site.streams.state is not State.NOT_RUNNING:
        return mistaken("nobody moved")
    if not is_up(returned):
        return mistaken("not running in the new folder")
    if not returned.folder.resolve().is_relative_to(site.new.resolve()):
        return mistaken("still in the old folder", folder=str(returned.folder.relative_to(site.folder)))
    shutil.rmtree(site.old, ignore_errors=True)
    returned.await_processed("60 seconds")
    again = len(site.broker.consume(site.topic("balances"))) - site.written
    if again:
        return mistaken("started again from the beginning", again=again)
    site.broker.produce(site.topic("deposits"), AFTER, value=LONG)
    returned.await_processed("60 seconds")
    found, due = dict(returned.store("balances").all()), sums([*BEFORE, *AFTER])
    if found != due:
        return wrong(f"The balances are {found}, and should be {due}.")
    return right(
        f"The bank moved, the old folder was deleted, {len(AFTER)} more deposits arrived, and all {len(due)} balances "
        "are right; no balance was written a second time."
    )


def sums(deposits: list[tuple[str, int]]) -> dict[str, int]:
    """Add up the deposits into each account."""
    totals: dict[str, int] = {}
    for account, amount in deposits:
        totals[account] = totals.get(account, 0) + amount
    return totals


def moved(
    to: Callable[[Site], Path] = lambda site: site.new,
    suffix: str = "",
    closed: bool = True,
    started: bool = True,
    cleaned: bool = False,
) -> Callable[[Site], KafkaStreams]:
    """Return an answer that closes the bank, copies its folder, and starts it there, or leaves one of these out."""

    def answer(site: Site) -> KafkaStreams:
        if closed:
            site.streams.close()
        if to(site) != site.old:
            shutil.copytree(site.old, to(site), dirs_exist_ok=True)
        streams = site.application(bank(site), suffix, state_dir=to(site))
        if cleaned:
            streams.clean_up()
        if started:
            streams.start()
        return streams

    return answer


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "15-fault-tolerance",
    standby=Runs(
        standby,
        wrong={
            "deletions passed over": WrongLoop(lambda: standby(passed_over=True)),
            "zero is a value": WrongLoop(lambda: standby(deletes=lambda value: not value)),
            "the order of time": WrongLoop(lambda: standby(wins=lambda new, kept: new >= kept)),
            "closed twice": WrongLoop(lambda: standby(tells_all=True)),
        },
        tested="A changelog that Kafka Streams wrote went in, and a longer one: the copy has the rows of the store.",
    ),
    after_compaction=Runs(
        branch_totals,
        tested="A log that was compacted halfway went in: the totals of all branches are right.",
        partitions=3,
    ),
    goes_on_from=SaysEach(lambda: COPIES, "Each of the three copies of the state is where you say.", TYPICAL_COPIES),
    deposited_once=Runs(
        deposited,
        wrong={
            "duplicates added": WrongLoop(every_one),
            "equal is not the same": WrongLoop(
                lambda: deposited(lambda account, deposit: (account, deposit["amount"]))
            ),
            "duplicates are not neighbours": WrongLoop(neighbours_once),
            "deposits are not a table": WrongLoop(lambda: deposited(lambda account, deposit: account)),
        },
        tested="One batch was written twice, another in part, and one deposit arrived twice: each deposit counts once.",
    ),
    through_an_outage=Lives(
        "through_an_outage",
        a_broker_that_fails,
        judge_through_an_outage,
        returns_application=True,
    ),
    move_house=Lives(
        "move_house",
        a_bank_that_runs,
        judge_move_house,
        returns_application=True,
        errors={ID_IS_TAKEN: "nobody moved"},
    ),
)
