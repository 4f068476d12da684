"""The mission of lab 15: a running application moves to another machine's disk, and nothing is lost or done twice."""

import shutil
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import functions as F

from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.missions import Site
from streamskit.dsl.builder import StreamsBuilder
from streamskit.runtime.states import State
from streamskit.runtime.streams import KafkaStreams
from streamskit.serdes import Serdes
from streamskit.topology import Topology

LONG = Serdes.long()
BEFORE = [(f"account-{n % 4}", 10 + n) for n in range(20)]
AFTER = [(f"account-{n % 5}", 1000 + n) for n in range(10)]


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
    """Judge a bank that has moved: it must need nothing of the old folder, and go on where it was."""
    if returned is site.streams or site.streams.state is not State.NOT_RUNNING:
        return mistaken("nobody moved")
    if returned.state is State.CREATED or returned.state is State.NOT_RUNNING:
        return mistaken("not running in the new house")
    if not returned.folder.resolve().is_relative_to(site.new.resolve()):
        return mistaken("still in the old house", folder=str(returned.folder.relative_to(site.folder)))
    shutil.rmtree(site.old, ignore_errors=True)
    returned.await_processed("60 seconds")
    again = len(site.broker.consume(site.topic("balances"))) - site.written
    if again:
        return mistaken("begun anew", again=again)
    site.broker.produce(site.topic("deposits"), AFTER, value=LONG)
    returned.await_processed("60 seconds")
    found, due = dict(returned.store("balances").all()), sums([*BEFORE, *AFTER])
    if found != due:
        return wrong(f"The balances are {found}, and should be {due}.")
    return right(
        f"The bank moved, the old folder was deleted, {len(AFTER)} deposits more came in, and all {len(due)} balances "
        "are right; no balance was written a second time."
    )


def sums(deposits: list[tuple[str, int]]) -> dict[str, int]:
    """Add up the deposits into each account."""
    totals: dict[str, int] = {}
    for account, amount in deposits:
        totals[account] = totals.get(account, 0) + amount
    return totals


# ---- wrong answers ---------------------------------------------------------------------------------------------------


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


WRONG = {
    "nobody moved": [lambda site: site.streams, moved(closed=False)],
    "not running in the new house": moved(started=False),
    "still in the old house": moved(to=lambda site: site.old),
    "begun anew": [moved(suffix="-2"), moved(cleaned=True)],
}
