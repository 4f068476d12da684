"""How the answers of lab 15 are judged: what goes in and has to come out, and signs of typical mistakes."""

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import functions as F

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.exercise import Verdict, mistaken, right, topology_of, wrong
from streamskit.course.labs.exercises import live
from streamskit.course.labs.parts import Typical
from streamskit.course.labs.recording import Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.runtime.streams import KafkaStreams
from streamskit.serdes import Serdes

LONG = Serdes.long()

# ---- 1: the store is its changelog -----------------------------------------------------------------------------------

Update = tuple[str, Any, int]
Rows = dict[str, Any]


def store_of(changelog: Sequence[Update]) -> Rows:
    """Return the rows that a changelog leaves: the last value of each key, unless that is null."""
    rows: Rows = {}
    for key, value, _ in changelog:
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value
    return rows


def latest_by_time(changelog: Sequence[Update]) -> Rows:
    """Let the largest timestamp of each key win."""
    return store_of(sorted(changelog, key=lambda update: update[2]))


def recorded_changelog() -> list[Update]:
    """Return what Kafka Streams wrote to the changelog of a table."""
    recording = Recording.of("ktable-source-changelog", changelogs=True)
    return [(row.key, row.value, row.timestamp or 0) for row in recording.outputs["oracle-rows-changelog"]]


def changelogs() -> list[tuple[list[Update]]]:
    """Return a recorded changelog, and a longer one with updates out of order."""
    chance = random.Random(15)
    drawn = [
        (f"account-{chance.randrange(5)}", chance.choice([None, 10, 20, 30, 0]), chance.randrange(100))
        for _ in range(60)
    ]
    return [(recorded_changelog(),), (drawn,), ([],)]


# ---- 2: compaction ---------------------------------------------------------------------------------------------------

Logged = tuple[int, str, int]


def compacted(records: Sequence[Logged], active: int) -> list[Logged]:
    """Return what compaction leaves: the last record of each key before `active`, and all from there on."""
    last = {key: offset for offset, key, _ in records if offset < active}
    return [record for record in records if record[0] >= active or last[record[1]] == record[0]]


def compacted_throughout(records: Sequence[Logged], active: int) -> list[Logged]:
    """Return the last record of each key, wherever it stands."""
    return compacted(records, len(records))


def without_the_active_segment(records: Sequence[Logged], active: int) -> list[Logged]:
    """Return what is left of the closed segments alone."""
    return [record for record in compacted(records, active) if record[0] < active]


def looked_ahead(records: Sequence[Logged], active: int) -> list[Logged]:
    """Return the active segment, and of the closed ones only what it does not have again."""
    last = {key: offset for offset, key, _ in records}
    return [record for record in records if record[0] >= active or last[record[1]] == record[0]]


def first_of_each(records: Sequence[Logged], active: int) -> list[Logged]:
    """Return the first record of each key before `active`, and all from there on."""
    first: dict[str, int] = {}
    for offset, key, _ in records:
        first.setdefault(key, offset)
    return [record for record in records if record[0] >= active or first[record[1]] == record[0]]


def in_order_of_keys(records: Sequence[Logged], active: int) -> list[Logged]:
    """Return the right records, where each key stood at first."""
    last = {key: (offset, key, value) for offset, key, value in records if offset < active}
    return [*last.values(), *(record for record in records if record[0] >= active)]


def logs() -> list[tuple[list[Logged], int]]:
    """Return logs of some segments, with the offset where the one that is being written begins."""
    chance = random.Random(51)
    log = [(offset, f"account-{chance.randrange(6)}", chance.randrange(100)) for offset in range(40)]
    return [(log, 30), (log, 12), (log, 0), (log[:5], 5)]


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


def added_once(deposits: Sequence[Deposit]) -> dict[str, int]:
    """Add up each account's deposits, those of one number once."""
    return _added({(account, deposit["id"]): (account, deposit) for account, deposit in deposits}.values())


def added_all(deposits: Sequence[Deposit]) -> dict[str, int]:
    """Add up all that came."""
    return _added(deposits)


def equal_ones_once(deposits: Sequence[Deposit]) -> dict[str, int]:
    """Take equal amounts into one account for the same deposit."""
    return _added({(account, deposit["amount"]): (account, deposit) for account, deposit in deposits}.values())


def neighbours_once(deposits: Sequence[Deposit]) -> dict[str, int]:
    """Leave out what is as the one before."""
    kept = [each for number, each in enumerate(deposits) if number == 0 or each != deposits[number - 1]]
    return _added(kept)


def last_of_each(deposits: Sequence[Deposit]) -> dict[str, int]:
    """Keep the last deposit into each account."""
    return {account: deposit["amount"] for account, deposit in deposits}


def _added(deposits: Any) -> dict[str, int]:
    sums: dict[str, int] = {}
    for account, deposit in deposits:
        sums[account] = sums.get(account, 0) + deposit["amount"]
    return sums


def twice_in_part() -> list[tuple[list[Deposit]]]:
    """Return deposits of which a batch was written again, whole or in part, and of which the last one came twice."""
    chance = random.Random(151)
    batches = [
        [(f"account-{chance.randrange(3)}", {"id": 10 * batch + n, "amount": chance.choice([5, 10])}) for n in range(6)]
        for batch in range(3)
    ]
    first, second, third = batches
    return [([*first, *again, *third],) for again in ([*second, *second], first[3:], first[-1:])]


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
            _forget_last_commit(Path(folder) / "lab-never-twice" / "0" / "commits")
            with application() as streams:
                streams.await_processed("60 seconds")
                return before, written(), dict(streams.store("balances").all())
        finally:
            application().clean_up()


def _forget_last_commit(commits: Path) -> None:
    last = max((file for file in commits.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
    for file in (last, last.with_name(f".{last.name}.crc")):
        file.unlink(missing_ok=True)
