"""The reference pages: everything that is offered is on them, with a text of its own."""

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import streamskit
from tests import reference


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    reference.write(folder)
    return folder


@pytest.mark.parametrize("module", reference.PAGES)
def test_every_name_that_a_module_offers_is_on_its_page(pages: Path, module: str) -> None:
    page = (pages / f"{module.replace('.', '/')}.html").read_text()
    names = names_of(importlib.import_module(module))
    assert names
    assert [name for name in names if f'id="{name}"' not in page] == []


def test_every_method_that_is_offered_says_what_it_does() -> None:
    silent = [where for where, thing in offered() if not (inspect.getdoc(thing) or "").strip()]
    assert silent == []


def names_of(module: ModuleType) -> list[str]:
    """The names that a module offers: those it lists, or else those it defines."""
    listed: list[str] = getattr(module, "__all__", [])
    own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    return listed or [name for name in own if not name.startswith("_")]


def offered() -> Iterator[tuple[str, Any]]:
    """The public classes and functions of the package, and what the classes define themselves."""
    for name in streamskit.__all__:
        thing = getattr(streamskit, name)
        yield name, thing
        if inspect.isclass(thing):
            for attribute, member in vars(thing).items():
                if not attribute.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                    yield f"{name}.{attribute}", member
