"""The pages of the API reference: one of each module that is offered, one of each of its classes."""

import importlib
import inspect
from pathlib import Path
from types import ModuleType

import streamskit

PAGES = streamskit.FACES
"""The modules whose names are offered; the rest is to be read as code."""


FROM_ELSEWHERE = ("Exception", "tuple", "str", "dict", "DOMWidget")
"""What these bring to a class that inherits from them is described by others."""


def write(folder: Path) -> None:
    """Write the sources of the reference pages, which Sphinx fills from the docstrings, into a folder."""
    for name in PAGES:
        module = importlib.import_module(name)
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.rst").write_text(_module_page(module))
        for each in _own_classes(module):
            (folder / name / f"{each}.rst").write_text(_class_page(module, each))


def names_of(module: ModuleType) -> list[str]:
    """The names that a module offers: those it lists, or else those it defines."""
    listed: list[str] = getattr(module, "__all__", [])
    own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    return listed or [name for name in own if not name.startswith("_")]


def _classes(module: ModuleType) -> list[str]:
    return [name for name in names_of(module) if inspect.isclass(getattr(module, name))]


def _own_classes(module: ModuleType) -> list[str]:
    return [name for name in _classes(module) if _home(module, name) == module.__name__]


def _home(module: ModuleType, name: str) -> str:
    """The module on whose pages a name is described: `streamskit` itself for what is offered there, too."""
    same = name in streamskit.__all__ and getattr(streamskit, name) is getattr(module, name)
    return streamskit.__name__ if same else module.__name__


def _module_page(module: ModuleType) -> str:
    name, classes = module.__name__, _classes(module)
    parts = [_title(name, "="), f".. automodule:: {name}\n   :no-members:"]
    if classes:
        rows = "\n".join(
            f"   * - :py:class:`~{_home(module, each)}.{each}`\n     - {_first_line(module, each)}" for each in classes
        )
        parts += [_title("Classes", "-"), f".. list-table::\n   :widths: 30 70\n\n{rows}"]
    if _own_classes(module):
        parts += [f".. toctree::\n   :hidden:\n   :glob:\n\n   {name}/*"]
    functions = [each for each in names_of(module) if inspect.isroutine(getattr(module, each))]
    if functions:
        parts += [_title("Functions", "-"), *(_function(module, each) for each in functions)]
    values = [each for each in names_of(module) if each not in {*classes, *functions}]
    if values:
        parts += [_title("Values", "-"), *(f".. autodata:: {name}.{each}" for each in values)]
    return "\n\n".join(parts) + "\n"


def _function(module: ModuleType, name: str) -> str:
    again = "\n   :no-index:" if _home(module, name) != module.__name__ else ""
    return f".. autofunction:: {module.__name__}.{name}{again}"


def _class_page(module: ModuleType, name: str) -> str:
    options = f"   :members:\n   :inherited-members: {', '.join(FROM_ELSEWHERE)}"
    return f"{_title(name, '=')}\n\n.. autoclass:: {module.__name__}.{name}\n{options}\n"


def _title(words: str, line: str) -> str:
    return f"{words}\n{line * len(words)}"


def _first_line(module: ModuleType, name: str) -> str:
    return (inspect.getdoc(getattr(module, name)) or "").partition("\n")[0]
