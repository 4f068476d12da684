"""`with broker:` starts a broker and stops what it started; no broker takes part."""

import pytest

from streamskit.broker import Broker, ExternalBroker
from streamskit.common.errors import BrokerError


class FakeBroker(Broker):
    """A broker that only says whether it runs; `starts` counts how often it was started."""

    kind, bootstrap_servers = "fake", "nowhere:9092"

    def __init__(self, runs: bool = False, fails: bool = False) -> None:
        self._runs, self.fails, self.starts = runs, fails, 0

    @property
    def is_running(self) -> bool:
        return self._runs

    def start(self) -> None:
        if self.fails:
            raise BrokerError("It does not start.")
        self._runs, self.starts = True, self.starts + 1

    def stop(self) -> None:
        self._runs = False

    kill = pause = resume = stop


def runs(broker: Broker) -> bool:
    return broker.is_running


def test_what_a_block_has_started_it_stops() -> None:
    with FakeBroker() as broker:
        assert runs(broker)
    assert not runs(broker)


def test_a_block_leaves_a_broker_running_that_ran_before() -> None:
    with FakeBroker(runs=True) as broker:
        assert runs(broker)
    assert runs(broker)


def test_the_outer_of_two_blocks_stops_what_it_started() -> None:
    with FakeBroker() as broker:
        with broker:
            assert runs(broker)
        assert runs(broker)
    assert not runs(broker)
    assert broker.starts == 1


def test_the_inner_of_two_blocks_stops_what_was_stopped_before_and_it_started() -> None:
    with FakeBroker() as broker:
        broker.stop()
        with broker:
            assert runs(broker)
        assert not runs(broker)
    assert broker.starts == 2


def test_a_block_that_did_not_begin_is_not_counted() -> None:
    broker = FakeBroker(fails=True)
    with pytest.raises(BrokerError), broker:
        pass
    broker.fails = False
    with broker:
        assert runs(broker)
    assert not runs(broker)


def test_a_broker_elsewhere_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExternalBroker, "is_running", True)
    with ExternalBroker("nowhere:9092") as broker, broker:
        assert broker.bootstrap_servers == "nowhere:9092"
