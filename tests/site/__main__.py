"""`make docs`: builds the site into build/site, and checks its links. A warning of Sphinx is an error."""

import importlib.util
import subprocess
import sys
from pathlib import Path

from tests.site import links, reference, staging

SETTINGS = staging.ROOT / "docs" / "site"


def build(target: Path) -> None:
    """Build the site into a folder; its sources are gathered beside it.

    Raises:
        SystemExit: Sphinx is not installed, has warned of something, or a link leads nowhere.
    """
    if importlib.util.find_spec("sphinx") is None:
        raise SystemExit("The site is built by Sphinx, which is not installed: run `make docs`, which installs it.")
    sources = target.with_name(f"{target.name}-sources")
    staging.stage(sources)
    reference.write(sources / "reference")
    options = ["-W", "--keep-going", "-q", "-E", "-j", "2", "-b", "html", "-c", str(SETTINGS)]
    if subprocess.run([sys.executable, "-m", "sphinx", *options, str(sources), str(target)]).returncode:
        raise SystemExit("Sphinx has found something wrong: it is named above.")
    _check_links(target)


def _check_links(target: Path) -> None:
    found = links.check(target)
    (target / "external-links.txt").write_text("\n".join(sorted(found.external)) + "\n")
    if found.broken:
        raise SystemExit("\n".join(["These links of the site lead nowhere:", *found.broken]))
    if found.loaded:
        raise SystemExit("\n".join(["These pages need something from another site:", *found.loaded]))
    print(f"{len(found.external)} links to other sites were not fetched; {target / 'external-links.txt'} lists them.")


if __name__ == "__main__":
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "build/site").absolute()
    build(site)
    print(f"The site is at {site / 'index.html'}.")
