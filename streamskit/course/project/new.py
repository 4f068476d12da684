"""`python -m streamskit new my-app`: begins your own project, with tests that pass."""

import argparse
import importlib.util
import keyword
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from streamskit.common.errors import StreamsKitError
from streamskit.common.paths import working_directory

TEMPLATE = Path(__file__).with_name("template")
NAME, PACKAGE = "my-app", "my_app"
"""The names that the template has; a project has its own in their places."""

SUFFIX = ".in"
HIDDEN = {"gitignore": ".gitignore"}


class ProjectError(StreamsKitError):
    """A project cannot be made, or does not meet the requirements."""


def create(name: str, place: Path) -> Path:
    """Make a project from the template, and return its folder.

    Args:
        name: of the application: small letters, digits and hyphens; the package has underscores for them.
        place: the folder in which the project's own folder is made.

    Raises:
        ProjectError: the name cannot be one of a Python package, is that of a module that is there already, or the
            folder exists or cannot be written.

    >>> create("page-visits", Path.home()).name  # doctest: +SKIP
    'page-visits'
    """
    package = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(package):
        raise ProjectError(
            f"'{name}' cannot be the name of a project: use small letters, digits and hyphens, as in {NAME}."
        )
    if taken := _taken_by(package, place):
        raise ProjectError(
            f"'{name}' cannot be the name of a project: {package} is {taken}, which its own package would hide. "
            f"Choose another name, as in my-{name}."
        )
    folder = place / name
    if folder.exists():
        raise ProjectError(f"{folder} exists. Choose another name, or move it away.")
    try:
        for file in template_files():
            target = folder / _filled(target_of(file), name, package)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_filled(file.read_text(), name, package))
    except OSError as error:
        raise ProjectError(
            f"{folder} cannot be written ({error.strerror}). Go to a folder that you may write to, and try again there."
        ) from error
    return folder


def template_files() -> list[Path]:
    """The files that a project is made of, as the template has them."""
    return sorted(TEMPLATE.rglob(f"*{SUFFIX}"))


def target_of(file: Path) -> str:
    """The path of a template's file below a project's folder, before the project's name is filled in."""
    path = str(file.relative_to(TEMPLATE)).removesuffix(SUFFIX)
    return HIDDEN.get(path, path)


def _taken_by(package: str, place: Path) -> str | None:
    """Return what has the name of a package already, in words; None where nothing does."""
    if package in sys.stdlib_module_names:
        return "a module of Python's own"
    if package in {Path(target_of(file)).parts[0] for file in template_files()} - {PACKAGE}:
        return "a folder that every project has"
    try:
        found = importlib.util.find_spec(package)
    except ValueError:  # a module that was made by a program, and not found anywhere
        return "a module that is loaded"
    here = [str(folder.resolve()) for folder in (place / package, place / f"{package}.py")]
    at = [*(found.submodule_search_locations or []), found.origin or ""] if found else []
    # A folder beside the new one is hidden from nobody: the project's own folder comes first wherever it is used.
    if found is None or any(str(Path(each).resolve()) in here for each in at):
        return None
    return "a module that is installed"


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a project in the current folder, and say what to do next."""
    parser = argparse.ArgumentParser(prog="python -m streamskit new", description=__doc__)
    parser.add_argument("name", help=f"of the application, as in {NAME}")
    folder = create(parser.parse_args(arguments).name, working_directory())
    print(
        f"{folder.name}/ is there: a topology, its tests, a notebook and a Dockerfile. Go on with:\n"
        f"  cd {folder.name}\n"
        "  python -m pytest                      # its tests\n"
        f"  python -m {folder.name.replace('-', '_')} --demo           # the sample records, on a broker\n"
        "  python -m streamskit check-project    # what every project has to hold"
    )
    return 0


def _filled(text: str, name: str, package: str) -> str:
    return text.replace(PACKAGE, package).replace(NAME, name)
