"""By what name an error calls the file that a program stands in."""

import sys
from types import ModuleType

import pytest

from streamskit.common.call_site import file_label


def test_a_file_has_its_name_while_another_thread_imports_ipython(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    assert file_label("/home/ann/app.py") == "app.py"
