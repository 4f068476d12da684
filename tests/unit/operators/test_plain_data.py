"""What operators keep is read without running anything."""

import pickle
from collections import OrderedDict
from typing import Any

import pytest

from streamskit.operators import plain_data
from streamskit.operators.records import OperatorRecord


class RunsCode:
    def __reduce__(self) -> Any:
        return print, ("code ran",)


def test_rows_ordered_rows_and_records_held_back_come_back_as_they_were() -> None:
    kept = {b"k": (b"v", 1), "records": [OperatorRecord(b"k", b"v", None, None, 1, None)], "lru": OrderedDict(a=1)}
    assert plain_data.loads(plain_data.dumps(kept)) == kept


@pytest.mark.parametrize("planted", [RunsCode(), print, pytest.MonkeyPatch])
def test_nothing_else_is_made_of_bytes(planted: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(pickle.UnpicklingError, match="is nothing that an operator keeps"):
        plain_data.loads(pickle.dumps({b"k": planted}))
    assert capsys.readouterr().out == ""
