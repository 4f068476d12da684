"""The reference pages: everything that is offered is on them, with a text of its own."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import streamskit
from tests.site import reference


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    reference.write(folder)
    return folder


@pytest.mark.parametrize("module", reference.PAGES)
def test_every_name_that_a_module_offers_is_on_its_page(pages: Path, module: str) -> None:
    page = (pages / f"{module}.rst").read_text()
    names = reference.names_of(importlib.import_module(module))
    assert names
    assert [name for name in names if not re.search(rf"(?:\.|^){name}\b(?:`|$)", page, re.M)] == []


def test_every_class_has_one_page_of_its_own(pages: Path) -> None:
    classes = {
        thing
        for module in map(importlib.import_module, reference.PAGES)
        for thing in (getattr(module, name) for name in reference.names_of(module))
        if inspect.isclass(thing)
    }
    described = [re.findall(r"autoclass:: (\S+)", page.read_text()) for page in pages.glob("*/*.rst")]
    names = [name.rpartition(".") for found in described for name in found]
    things = [getattr(importlib.import_module(module), name) for module, _, name in names]
    assert len(things) == len(set(things))
    assert set(things) == classes


def test_every_method_that_is_offered_says_what_it_does() -> None:
    silent = [where for where, thing in offered() if not (inspect.getdoc(thing) or "").strip()]
    assert silent == []


def offered() -> Iterator[tuple[str, Any]]:
    """The public classes and functions of the package, and what the classes define themselves."""
    for name in streamskit.__all__:
        thing = getattr(streamskit, name)
        yield name, thing
        if inspect.isclass(thing):
            for attribute, member in vars(thing).items():
                if not attribute.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                    yield f"{name}.{attribute}", member
