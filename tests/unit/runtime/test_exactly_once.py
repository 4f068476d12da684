"""What a checkpoint and the marks of transactions say together: what is written, and when nobody can know."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from streamskit.common.errors import StreamsError
from streamskit.runtime.recovery import exactly_once
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.recovery.exactly_once import (
    CommittedBatch,
    Transactions,
    last_written,
    transaction_failure,
)

QUERY = "5c1f"
PLAN: Any = SimpleNamespace(
    name="0",
    application_id="app",
    transactions_topic="app-0-transactions",
    sinks=[SimpleNamespace(name="KSTREAM-SINK-0000000001", call_site="lesson.py line 3")],
    topic=lambda sink: "orders",
)


def noted(query: str, begun: int, finished: int) -> Any:
    """Return a checkpoint that says so."""
    return SimpleNamespace(query_id=query, last_begun=begun, last_finished=finished)


def test_a_checkpoint_says_what_was_begun_and_what_was_finished(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "nowhere")
    assert (checkpoint.query_id, checkpoint.last_begun, checkpoint.last_finished) == ("", -1, -1)
    (tmp_path / "metadata").write_text(f'{{"id":"{QUERY}"}}')
    for name in ("offsets/9", "offsets/10", "offsets/.10.crc", "commits/8", "commits/9"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    checkpoint = Checkpoint(tmp_path)
    assert (checkpoint.query_id, checkpoint.last_begun, checkpoint.last_finished) == (QUERY, 10, 9)


@pytest.mark.parametrize(
    ("checkpoint", "last", "expected"),
    [
        pytest.param(noted("", -1, -1), None, -1, id="a first start"),
        pytest.param(noted("", -1, -1), CommittedBatch("of another life", 9), -1, id="a checkpoint that was deleted"),
        pytest.param(noted(QUERY, 4, 4), None, 4, id="at least once before"),
        pytest.param(noted(QUERY, 4, 4), CommittedBatch(QUERY, 4), 4, id="all is done"),
        pytest.param(noted(QUERY, 4, 4), CommittedBatch(QUERY, 2), 4, id="at least once in between"),
        pytest.param(noted(QUERY, 5, 4), CommittedBatch(QUERY, 4), 4, id="died before the transaction was committed"),
        pytest.param(noted(QUERY, 5, 4), CommittedBatch(QUERY, 5), 5, id="died after the transaction was committed"),
        pytest.param(noted(QUERY, 0, -1), CommittedBatch("", -1), -1, id="died in the first batch"),
        pytest.param(noted(QUERY, 0, -1), CommittedBatch(QUERY, 0), 0, id="died after the first batch"),
        pytest.param(noted(QUERY, 4, 4), CommittedBatch("of another life", 9), 4, id="a mark of another checkpoint"),
    ],
)
def test_what_is_written_follows_from_checkpoint_and_mark(
    checkpoint: Any, last: CommittedBatch | None, expected: int
) -> None:
    assert last_written(checkpoint, last, PLAN) == expected


@pytest.mark.parametrize(
    "last", [None, CommittedBatch("of another life", 5), CommittedBatch(QUERY, 3), CommittedBatch(QUERY, 6)]
)
def test_a_batch_of_which_nobody_knows_whether_it_was_written_is_refused(last: CommittedBatch | None) -> None:
    with pytest.raises(StreamsError, match="Nothing says whether micro-batch 5 of sub-topology 0 of 'app' was written"):
        last_written(noted(QUERY, 5, 4), last, PLAN)


@pytest.mark.parametrize("checkpoint", [noted(QUERY, 4, 4), noted(QUERY, 4, 5)])
def test_a_checkpoint_older_than_what_was_written_is_refused(checkpoint: Any) -> None:
    with pytest.raises(StreamsError, match="ends with micro-batch 4, and batch 5 was written already"):
        last_written(checkpoint, CommittedBatch(QUERY, 5), PLAN)


TOO_LARGE = (
    "[STREAM_FAILED] ... org.apache.spark.sql.streamskit.NotWritten: a record could not be written to topic '{}': "
    "org.apache.kafka.common.errors.RecordTooLargeException: The message is 9 bytes.\n\tat somewhere"
)


@pytest.mark.parametrize(
    "said", ["Failed to get offsets by times in 60032ms", "Timeout expired after 60000ms while awaiting InitProducerId"]
)
def test_transactions_that_could_not_begin_ask_for_the_broker_first(monkeypatch: Any, said: str) -> None:
    class NotBegunError(Py4JJavaError):
        def __init__(self) -> None:
            kind = "org.apache.kafka.common.errors.TimeoutException"
            self.java_exception = SimpleNamespace(toString=lambda: f"{kind}: {said}")

    def begin(*_: Any) -> None:
        raise NotBegunError

    monkeypatch.setattr(exactly_once, "java_class", lambda name: begin)
    options = SimpleNamespace(bootstrap_servers="localhost:9092")
    plan: Any = SimpleNamespace(name="0", application_id="app", transactions_topic="marks", options=options)
    with pytest.raises(StreamsError) as told:
        Transactions(plan, {"kafka.bootstrap.servers": "localhost:9092"}).abort()
    assert f"TimeoutException: {said}. Does the broker at localhost:9092 answer?" in str(told.value)
    assert ("transaction.state.log.replication.factor=1" in str(told.value)) == ("InitProducerId" in said)


def test_a_record_that_was_refused_is_told_of_with_its_sink_and_topic() -> None:
    assert str(transaction_failure(TOO_LARGE.format("orders"), PLAN)) == (
        "KSTREAM-SINK-0000000001 (written at lesson.py line 3): a record could not be written to topic 'orders': "
        "RecordTooLargeException: The message is 9 bytes. Nothing of its micro-batch was."
    )
    assert "Sub-topology 0 of 'app': a record could not be written to topic 'app-counts-changelog': " in str(
        transaction_failure(TOO_LARGE.format("app-counts-changelog"), PLAN)
    )


def test_a_record_that_has_grown_too_large_is_told_with_the_setting() -> None:
    text = TOO_LARGE.replace("9 bytes.", "9 bytes, larger than 8, the value of the max.request.size configuration.")
    assert "raise max_request_size of the application" in str(transaction_failure(text.format("orders"), PLAN))


@pytest.mark.parametrize("kind", ["ProducerFencedException", "InvalidProducerEpochException"])
def test_a_fenced_run_says_that_another_one_has_begun(kind: str) -> None:
    said = transaction_failure(f"Caused by: org.apache.kafka.common.errors.{kind}: There is a newer producer.", PLAN)
    assert "another run of the application has begun" in str(said)


def test_a_transaction_that_was_open_for_too_long_says_for_how_long_and_what_to_do() -> None:
    said = (
        "TransactionTimedOut: the transaction was open for 301000 ms, and the broker has aborted it: "
        "org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer."
    )
    assert str(transaction_failure(said, PLAN)) == (
        "A micro-batch of sub-topology 0 of 'app' took 301 s: the broker aborts a transaction that is open for "
        "more than 5 min. Nothing of the batch can be seen, and nothing is lost: start again. From then on, until "
        "clean_up(), a micro-batch takes half as many records at most, or fewer with a smaller max_records_per_batch. "
        "If you know the reason, such as a slow service that is called for each record, fix that."
    )


def test_other_failures_are_none_of_a_transaction() -> None:
    assert transaction_failure("[DIVIDE_BY_ZERO] Division by zero.", PLAN) is None
