"""Who of several that want to run an application does."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from streamskit.runtime.sole_runner import Claim, chosen

FIRST = Claim("a machine", 1, "then", "folder", since=10.0)
SECOND = replace(FIRST, since=11.0, id="second")
RUNNING = replace(FIRST, since=12.0, running_since=13.0, id="running")
TOOK_OVER = replace(FIRST, since=14.0, running_since=15.0, id="took over")


@pytest.mark.parametrize(
    ("winner", "claims"),
    [
        (FIRST, [FIRST, SECOND]),
        (RUNNING, [FIRST, SECOND, RUNNING]),
        (TOOK_OVER, [FIRST, RUNNING, TOOK_OVER]),
        (SECOND, [SECOND]),
    ],
    ids=["who asked first", "who runs already", "who took over last", "who is alone"],
)
def test_one_is_chosen_whoever_is_asked(winner: Claim, claims: list[Claim]) -> None:
    assert {chosen(order) for order in permutations(claims)} == {winner}


def test_two_that_asked_at_the_same_moment_are_told_apart() -> None:
    twins = [replace(FIRST, id="a"), replace(FIRST, id="b")]
    assert chosen(twins) == chosen(twins[::-1])


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


def test_a_claim_says_where_to_look() -> None:
    assert str(RUNNING) == "process 1 on 'a', since 1970-01-01 00:00:13 UTC, with the folder folder"
