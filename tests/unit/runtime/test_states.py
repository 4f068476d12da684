"""The states of an application: REBALANCING lasts as long as there is a reason for it."""

import threading
import time

import pytest

from streamskit.runtime.states import ENDING, State, StateMachine


@pytest.fixture
def moves() -> list[str]:
    return []


@pytest.fixture
def states(moves: list[str]) -> StateMachine:
    made = StateMachine()
    made.add_listener(lambda new, old: moves.append(new.name))
    return made


def test_it_runs_again_only_when_the_last_reason_is_gone(states: StateMachine, moves: list[str]) -> None:
    states.hold("a query")
    states.hold("the broker")
    states.release("a query")
    assert states.state is State.REBALANCING
    states.release("the broker")
    assert moves == ["REBALANCING", "RUNNING"]


def test_a_reason_that_ends_after_the_application_has_failed_brings_it_not_back(states: StateMachine) -> None:
    states.hold("a query")
    states.move(State.PENDING_ERROR)
    states.release("a query")
    assert states.state is State.PENDING_ERROR


def test_a_listener_that_fails_keeps_nobody_from_moving(states: StateMachine, moves: list[str]) -> None:
    states.add_listener(lambda new, old: 1 / 0)  # type: ignore[arg-type]
    states.hold("a query")
    assert moves == ["REBALANCING"]


def test_a_shutdown_under_way_can_be_waited_for(states: StateMachine) -> None:
    states.hold("a query")
    states.move(State.PENDING_ERROR)
    assert not states.await_none_of(ENDING, 0.01)
    threading.Timer(0.05, states.move, (State.ERROR,)).start()
    assert states.await_none_of(ENDING, 5)


def test_a_listener_does_not_wait_for_the_shutdown_that_it_is_told_of(states: StateMachine) -> None:
    states.hold("a query")
    waited: list[tuple[bool, bool]] = []

    def wait(new: State, old: State) -> None:
        began = time.monotonic()
        waited.append((states.await_none_of(ENDING, 30), time.monotonic() - began < 10))

    states.add_listener(wait)
    with states.ending_here():
        with states.ending_here():  # close() in a listener
            pass
        states.move(State.PENDING_ERROR)
    assert waited == [(False, True)]
    threading.Timer(0.05, states.move, (State.ERROR,)).start()
    assert states.await_none_of(ENDING, 5)
