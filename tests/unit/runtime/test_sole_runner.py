"""Who of several that want to run an application does."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from streamskit.common.errors import StreamsError
from streamskit.environment.processes import wait_until
from streamskit.runtime.sole_runner import Claim, SoleRunner, _Assignor, chosen

FIRST = Claim("a machine", 1, "then", "folder", since=10.0)
SECOND = replace(FIRST, since=11.0, id="second")
RUNNING = replace(FIRST, since=12.0, running_since=13.0, id="running", member="stays", generation=3)
TOOK_OVER = replace(FIRST, since=14.0, running_since=15.0, id="took over", member="stays", generation=5)
OF_AN_EARLIER_VERSION = replace(FIRST, since=12.0, running_since=13.0, id="earlier")


@pytest.mark.parametrize(
    ("winner", "claims"),
    [
        (FIRST, {"a": FIRST, "b": SECOND}),
        (RUNNING, {"a": FIRST, "b": SECOND, "stays": RUNNING}),
        (RUNNING, {"a": FIRST, "of another name": RUNNING}),
        (TOOK_OVER, {"a": FIRST, "of another name": RUNNING, "stays": TOOK_OVER}),
        (TOOK_OVER, {"a": FIRST, "of another name": RUNNING, "and another": TOOK_OVER}),
        (OF_AN_EARLIER_VERSION, {"a": FIRST, "b": OF_AN_EARLIER_VERSION}),
        (SECOND, {"a": SECOND}),
    ],
    ids=[
        "who asked first",
        "who runs already",
        "who was out of touch, and nobody took over",
        "who took over",
        "who took over, and both were out of touch",
        "who runs already and says less",
        "who is alone",
    ],
)
def test_one_is_chosen_whoever_is_asked(winner: Claim, claims: dict[str, Claim]) -> None:
    for order in permutations(claims):
        assert chosen({member: claims[member] for member in order}).id == winner.id


@pytest.mark.parametrize("behind", [0.0, 3600.0])
@pytest.mark.parametrize("generation", [5, 1], ids=["in one life of the group", "the group was deleted in between"])
def test_who_took_over_stays_also_with_a_clock_behind_that_of_who_comes_back(behind: float, generation: int) -> None:
    older, began = replace(RUNNING, running_since=5000.0), 6000.0 - behind
    newer = replace(TOOK_OVER, since=began, running_since=began, generation=generation)
    assert chosen({"of another name": older, "stays": newer}).id == newer.id


class Member(NamedTuple):
    """A member of a group, as its leader sees it."""

    member_id: str
    metadata: Any


def test_a_group_agrees_on_who_has_kept_its_place_whatever_the_clocks_say() -> None:
    """Two processes in a group, the first of which is frozen for a while; the clock of the second is an hour behind."""
    runners = {name: SoleRunner("app", "nowhere:1", Path(name), lambda why: None) for name in ("first", "second")}
    for number, runner in enumerate(runners.values()):
        runner._claim = replace(FIRST, since=4000.0 * (1 - number) + 1, id=str(number))
        runner._heard = None
    assignors = {name: _Assignor(partial(getattr, each, "_claim"), each._hear) for name, each in runners.items()}

    def agree(generation: int, clock: float, **members: str) -> None:
        said = [Member(members[name], assignors[name].metadata(["in"])) for name in members]
        leader = next(iter(members))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("streamskit.runtime.sole_runner.time.time", lambda: clock)
            for name, answer in zip(members, assignors[leader].assign(None, said).values(), strict=True):
                assignors[name].on_assignment(answer, generation)

    agree(1, 5000.0, first="m-1")
    agree(2, 1400.0, second="m-2")  # the session of the first is over
    for order in (("first", "second"), ("second", "first")):  # whoever is the leader
        agree(3, 9000.0, **{name: {"first": "m-3", "second": "m-2"}[name] for name in order})
        assert [each._heard.id for each in runners.values() if each._heard] == ["1", "1"]


def test_two_that_asked_at_the_same_moment_are_told_apart() -> None:
    twins = [replace(FIRST, id="a"), replace(FIRST, id="b")]
    assert chosen(dict(zip("xy", twins, strict=True))).id == chosen(dict(zip("xy", twins[::-1], strict=True))).id


def test_a_claim_travels_as_text_and_what_is_none_is_nobody_s() -> None:
    assert Claim.from_bytes(RUNNING.to_bytes()) == RUNNING
    assert [Claim.from_bytes(data) for data in (None, b"", b"\xff", b"[]", b'{"pid": 1}')] == [None] * 5


def test_a_claim_of_a_later_version_counts_though_it_says_more() -> None:
    said = json.loads(RUNNING.to_bytes()) | {"rack": "b"}
    assert Claim.from_bytes(json.dumps(said).encode()) == RUNNING


def test_this_process_is_alive_and_one_that_has_ended_is_dead(tmp_path: Path) -> None:
    here = Claim.of_this_process(tmp_path)
    assert not here.is_dead
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert replace(here, pid=ended.pid).is_dead


def test_a_process_that_has_got_the_number_of_a_dead_one_is_another(tmp_path: Path) -> None:
    here = Claim.of_this_process(tmp_path)
    assert replace(here, started="another time").is_dead


def test_of_another_machine_nothing_is_known(tmp_path: Path) -> None:
    assert not replace(Claim.of_this_process(tmp_path), machine="elsewhere", pid=2**22 + os.getpid()).is_dead


@pytest.mark.parametrize("runs", [False, True], ids=["at the start", "later"])
def test_a_runner_that_fails_for_any_reason_says_so(
    runs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[StreamsError] = []
    runner = SoleRunner("app", "nowhere:1", tmp_path, lost.append)
    monkeypatch.setattr(runner, "_bury_the_dead", lambda: None)

    def take_part() -> None:
        if runs:
            runner._answered.set()
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(runner, "_take_part", take_part)
    why = (
        "'app' cannot know whether it runs elsewhere, and does not run without that: its place in the consumer group "
        "'app-runner' was lost to OSError: [Errno 24] Too many open files"
    )
    runner.claim("in")
    if runs:
        runner.confirm()
    else:
        with pytest.raises(StreamsError) as refused:
            runner.confirm()
        assert str(refused.value) == why
    wait_until(lambda: runner._thread is not None and not runner._thread.is_alive(), "the end of its thread", 20)
    assert [str(failure) for failure in lost] == ([why] if runs else [])
    runner.release()


def test_a_claim_says_where_to_look() -> None:
    assert str(RUNNING) == "process 1 on 'a', since 1970-01-01 00:00:13 UTC, with the folder folder"
