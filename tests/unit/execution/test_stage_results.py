"""Results of a stage are handed over to Spark before there are many of them, by number and by bytes."""

import pytest

from streamskit.execution.arrow_batches import table_of
from streamskit.execution.stage_rows import CHUNK, CHUNK_BYTES, StageResults
from streamskit.operators.records import Output
from tests.unit.execution.packed_rows import rows_of


def results(count: int, size: int) -> StageResults:
    """Return so many results, each with a value and an old value of so many bytes."""
    made = StageResults(task=0, numbers=[0])
    made.take([Output(0, b"k", b"x" * size, b"x" * size, None, None, 1, None)] * count)
    return made


@pytest.mark.parametrize(
    ("count", "size", "are_many"),
    [
        pytest.param(CHUNK - 1, 10, False, id="not yet"),
        pytest.param(CHUNK, 10, True, id="many"),
        pytest.param(7, CHUNK_BYTES // 16, False, id="a few large ones"),
        pytest.param(8, CHUNK_BYTES // 16, True, id="as many bytes as are handed over at once"),
    ],
)
def test_results_are_handed_over_by_number_or_by_bytes(count: int, size: int, are_many: bool) -> None:
    assert results(count, size).are_many is are_many


def test_what_passes_by_counts_too() -> None:
    made = StageResults(task=0, numbers=[0])
    row = (0, "topic", b"k", b"x" * CHUNK_BYTES, None, None, None, 1, None, 0, 1, 0, 0)
    made.pass_on(row)
    assert made.are_many


def test_what_was_handed_over_counts_no_more() -> None:
    made = results(8, CHUNK_BYTES // 16)
    list(made.take_packed())
    assert not made.are_many
    assert not list(made.take_packed())


@pytest.mark.parametrize(
    ("count", "size", "lengths"),
    [
        pytest.param(2 * CHUNK + 1, 10, [CHUNK, CHUNK, 1], id="many"),
        pytest.param(20, CHUNK_BYTES // 16, [8, 8, 4], id="large ones"),
        pytest.param(2, 3 * CHUNK_BYTES, [1, 1], id="each larger than a piece"),
    ],
)
def test_what_one_record_lets_go_is_handed_over_in_pieces(count: int, size: int, lengths: list[int]) -> None:
    packs = [rows_of(table_of(pack), ["position"]) for pack in results(count, size).take_packed()]
    assert [len(pack) for pack in packs] == lengths
    assert [place for pack in packs for (place,) in pack] == list(range(count))
