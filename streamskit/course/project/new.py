"""`python -m streamskit new my-app`: begins your own project, with tests that pass."""

import argparse
import keyword
import re
from collections.abc import Sequence
from pathlib import Path

from streamskit.common.errors import StreamsKitError

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
        ProjectError: the name cannot be one of a Python package, or the folder exists.

    >>> create("page-visits", Path.home()).name  # doctest: +SKIP
    'page-visits'
    """
    package = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(package):
        raise ProjectError(
            f"'{name}' cannot be the name of a project: use small letters, digits and hyphens, as in {NAME}."
        )
    folder = place / name
    if folder.exists():
        raise ProjectError(f"{folder} exists. Choose another name, or move it away.")
    for file in template_files():
        target = folder / _filled(target_of(file), name, package)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_filled(file.read_text(), name, package))
    return folder


def template_files() -> list[Path]:
    """The files that a project is made of, as the template has them."""
    return sorted(TEMPLATE.rglob(f"*{SUFFIX}"))


def target_of(file: Path) -> str:
    """The path of a template's file below a project's folder, before the project's name is filled in."""
    path = str(file.relative_to(TEMPLATE)).removesuffix(SUFFIX)
    return HIDDEN.get(path, path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a project in the current folder, and say what to do next."""
    parser = argparse.ArgumentParser(prog="python -m streamskit new", description=__doc__)
    parser.add_argument("name", help=f"of the application, as in {NAME}")
    folder = create(parser.parse_args(arguments).name, Path.cwd())
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
