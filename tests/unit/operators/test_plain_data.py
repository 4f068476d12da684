"""What operators keep is read without running anything."""

import pickle
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

from streamskit.operators import plain_data
from streamskit.operators.records import OperatorRecord


class RunsCode:
    def __reduce__(self) -> Any:
        return print, ("code ran",)


def test_rows_ordered_rows_and_records_held_back_come_back_as_they_were() -> None:
    kept = {b"k": (b"v", 1), "records": [OperatorRecord(b"k", b"v", None, None, 1, None)], "lru": OrderedDict(a=1)}
    assert plain_data.loads(plain_data.dumps(kept)) == kept


def test_what_arrow_gives_as_numpy_comes_back_as_plain_python() -> None:
    headers = np.array([{"key": "from", "value": b"s1"}], dtype=object)
    kept: list[Any] = [np.bytes_(b"v"), headers, np.int64(1), np.float64(0.5), np.bool_(True)]
    read = plain_data.loads(plain_data.dumps({b"k": kept}))[b"k"]
    assert read == [b"v", [{"key": "from", "value": b"s1"}], 1, 0.5, True]
    assert [type(each) for each in read] == [bytes, list, int, float, bool]


@pytest.mark.parametrize("planted", [RunsCode(), print, pytest.MonkeyPatch])
def test_nothing_else_is_made_of_bytes(planted: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(pickle.UnpicklingError, match="is not something that an operator keeps"):
        plain_data.loads(pickle.dumps({b"k": planted}))
    assert capsys.readouterr().out == ""
