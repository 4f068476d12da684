"""What a checkpoint and the marks of transactions say together: what is written, and when nobody can know."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamskit.common.errors import StreamsError
from streamskit.runtime.recovery.exactly_once import Checkpoint, Mark, last_written
from streamskit.runtime.transaction_errors import unwritten

QUERY = "5c1f"
PLAN: Any = SimpleNamespace(
    name="0",
    application_id="app",
    transactions_topic="app-0-transactions",
    sinks=[SimpleNamespace(name="KSTREAM-SINK-0000000001", call_site="lesson.py line 3")],
    topic=lambda sink: "orders",
)


def test_a_checkpoint_says_what_was_begun_and_what_was_finished(tmp_path: Path) -> None:
    assert Checkpoint.read(tmp_path / "nowhere") == Checkpoint("", -1, -1)
    (tmp_path / "metadata").write_text(f'{{"id":"{QUERY}"}}')
    for name in ("offsets/9", "offsets/10", "offsets/.10.crc", "commits/8", "commits/9"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert Checkpoint.read(tmp_path) == Checkpoint(QUERY, 10, 9)


@pytest.mark.parametrize(
    ("noted", "last", "expected"),
    [
        pytest.param(Checkpoint("", -1, -1), None, -1, id="a first start"),
        pytest.param(Checkpoint("", -1, -1), Mark("of another life", 9), -1, id="a checkpoint that was deleted"),
        pytest.param(Checkpoint(QUERY, 4, 4), None, 4, id="at least once before"),
        pytest.param(Checkpoint(QUERY, 4, 4), Mark(QUERY, 4), 4, id="all is done"),
        pytest.param(Checkpoint(QUERY, 4, 4), Mark(QUERY, 2), 4, id="at least once in between"),
        pytest.param(Checkpoint(QUERY, 5, 4), Mark(QUERY, 4), 4, id="died before the transaction was committed"),
        pytest.param(Checkpoint(QUERY, 5, 4), Mark(QUERY, 5), 5, id="died after the transaction was committed"),
        pytest.param(Checkpoint(QUERY, 0, -1), Mark("", -1), -1, id="died in the first batch"),
        pytest.param(Checkpoint(QUERY, 0, -1), Mark(QUERY, 0), 0, id="died after the first batch"),
        pytest.param(Checkpoint(QUERY, 4, 4), Mark("of another life", 9), 4, id="a mark of another checkpoint"),
    ],
)
def test_what_is_written_follows_from_checkpoint_and_mark(noted: Checkpoint, last: Mark | None, expected: int) -> None:
    assert last_written(noted, last, PLAN) == expected


@pytest.mark.parametrize("last", [None, Mark("of another life", 5), Mark(QUERY, 3), Mark(QUERY, 6)])
def test_a_batch_of_which_nobody_knows_whether_it_was_written_is_refused(last: Mark | None) -> None:
    with pytest.raises(StreamsError, match="Nothing says whether micro-batch 5 of sub-topology 0 of 'app' was written"):
        last_written(Checkpoint(QUERY, 5, 4), last, PLAN)


@pytest.mark.parametrize("noted", [Checkpoint(QUERY, 4, 4), Checkpoint(QUERY, 4, 5)])
def test_a_checkpoint_older_than_what_was_written_is_refused(noted: Checkpoint) -> None:
    with pytest.raises(StreamsError, match="ends with micro-batch 4, and batch 5 was written already"):
        last_written(noted, Mark(QUERY, 5), PLAN)


TOO_LARGE = (
    "[STREAM_FAILED] ... org.apache.spark.sql.streamskit.NotWritten: a record could not be written to topic '{}': "
    "org.apache.kafka.common.errors.RecordTooLargeException: The message is 9 bytes.\n\tat somewhere"
)


def test_a_record_that_was_refused_is_told_of_with_its_sink_and_topic() -> None:
    assert str(unwritten(TOO_LARGE.format("orders"), PLAN)) == (
        "KSTREAM-SINK-0000000001 (written at lesson.py line 3): a record could not be written to topic 'orders': "
        "RecordTooLargeException: The message is 9 bytes. Nothing of its micro-batch was."
    )
    assert "Sub-topology 0 of 'app': a record could not be written to topic 'app-counts-changelog': " in str(
        unwritten(TOO_LARGE.format("app-counts-changelog"), PLAN)
    )


@pytest.mark.parametrize("kind", ["ProducerFencedException", "InvalidProducerEpochException"])
def test_a_fenced_run_says_that_another_one_has_begun(kind: str) -> None:
    said = unwritten(f"Caused by: org.apache.kafka.common.errors.{kind}: There is a newer producer.", PLAN)
    assert "another run of the application has begun" in str(said)


def test_other_failures_are_none_of_a_transaction() -> None:
    assert unwritten("[DIVIDE_BY_ZERO] Division by zero.", PLAN) is None
