"""A foreign-key join whose rows lead to very few keys."""

import time

from streamskit.operators import OperatorRecord
from streamskit.operators.foreign_key_join import (
    Instruction,
    SubscriptionJoinOperator,
    SubscriptionWrapper,
    fingerprint,
)
from tests.unit.operators.operator_harness import Harness


def seconds_for(count: int, keys: int) -> float:
    """Return how long so many subscriptions take that are spread over so many foreign keys."""
    task = Harness([SubscriptionJoinOperator("join", left=False)], together=True)
    records = [
        OperatorRecord(b"%d" % (number % keys), _subscription(b"row %d" % number), None, None, 0, None)
        for number in range(count)
    ]
    began = time.perf_counter()
    task.give_all(0, 0, records)
    return time.perf_counter() - began


def _subscription(primary_key: bytes) -> bytes:
    instruction = Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE
    return SubscriptionWrapper(instruction, fingerprint(primary_key), primary_key).to_bytes()


def test_a_key_with_very_many_subscribers_takes_no_longer_than_as_many_keys_with_one() -> None:
    count = 30_000
    alone, together = (min(seconds_for(count, keys) for _ in range(2)) for keys in (count, 1))
    assert together < 8 * alone
