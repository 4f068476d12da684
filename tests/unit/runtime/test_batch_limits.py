"""How much a micro-batch takes: by number, and by the size of the records."""

from types import SimpleNamespace
from typing import Any

import pytest

from streamskit.api.streams_config import StreamsConfig
from streamskit.runtime.batch_limits import BatchLimits

PYTHON: Any = SimpleNamespace(operators=("one",))
SPARK: Any = SimpleNamespace(operators=())


@pytest.mark.parametrize(
    ("plan", "settings", "size", "records", "rows"),
    [
        pytest.param(PYTHON, {}, 0, 500_000, 10_000, id="nothing is known of the records"),
        pytest.param(PYTHON, {}, 60, 500_000, 10_000, id="small records"),
        pytest.param(PYTHON, {}, 120_000, 279, 69, id="large records"),
        pytest.param(PYTHON, {}, 10**9, 1, 1, id="records larger than any limit"),
        pytest.param(PYTHON, {"max_records_per_batch": 70}, 120_000, 70, 69, id="the user wants less"),
        pytest.param(PYTHON, {"max_records_per_batch": 10**6}, 120_000, 279, 69, id="the user wants more"),
        pytest.param(SPARK, {}, 120_000, None, 69, id="Spark alone takes all there are"),
        pytest.param(SPARK, {"processing_guarantee": "exactly_once"}, 10, 2_000_000, 10_000, id="one transaction"),
    ],
)
def test_a_micro_batch_is_bounded_by_number_and_by_bytes(
    plan: Any, settings: dict[str, Any], size: float, records: int | None, rows: int
) -> None:
    config = StreamsConfig.of("app", "localhost:9092", **settings)
    assert BatchLimits.of(config, plan, size) == BatchLimits(records, rows)


def test_what_once_took_too_long_bounds_a_micro_batch_too() -> None:
    limits = BatchLimits(500, 10)
    assert [limits.at_most(most).records for most in (None, 700, 200)] == [500, 500, 200]
    assert [BatchLimits(None, 10).at_most(most) for most in (None, 7)] == [BatchLimits(None, 10), BatchLimits(7, 10)]
