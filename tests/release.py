"""Whether a version can be released: `python -m tests.release v0.1.0`. All places that name a version have to agree."""

import re
import sys
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
NOTES = ROOT / "build" / "release-notes.md"


def versions(root: Path = ROOT) -> dict[str, str]:
    """The version that each place of a project names, by the place."""
    source = (root / "streamskit" / "__init__.py").read_text()
    return {
        "pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"],
        "streamskit/__init__.py": "".join(re.findall(r'^__version__ = "(.+)"$', source, re.M)),
        "CITATION.cff": str(yaml.safe_load((root / "CITATION.cff").read_text())["version"]),
        "CHANGELOG.md": next(iter(_sections(root)), "none"),
    }


def check(tag: str, root: Path = ROOT) -> str:
    """Check that a tag is that of the version that is here.

    Args:
        tag: such as `v0.1.0`.
        root: the project's folder.

    Returns:
        What the changelog says of the version.

    Raises:
        SystemExit: a place names another version, or the changelog has something that belongs to no version yet.
    """
    wrong = [f"{place} says {found}" for place, found in versions(root).items() if f"v{found}" != tag]
    if wrong:
        raise SystemExit(f"{tag} cannot be released: {', '.join(wrong)}.")
    unreleased = (root / "CHANGELOG.md").read_text().partition("## [Unreleased]")[2].partition("\n## [")[0]
    if unreleased.strip():
        raise SystemExit(
            f"{tag} cannot be released: CHANGELOG.md has changes below [Unreleased]. Move them to {tag[1:]}."
        )
    return _sections(root)[tag[1:]]


def _sections(root: Path) -> dict[str, str]:
    """What the changelog says of each released version, the newest first."""
    parts = re.split(r"^## \[(\d[^]]*)\].*$", (root / "CHANGELOG.md").read_text(), flags=re.M)
    return {version: text.strip() + "\n" for version, text in zip(parts[1::2], parts[2::2], strict=True)}


if __name__ == "__main__":
    notes = check(sys.argv[1])
    NOTES.parent.mkdir(exist_ok=True)
    NOTES.write_text(notes)
    print(f"{sys.argv[1]} can be released; {NOTES.relative_to(ROOT)} says what is new.")
