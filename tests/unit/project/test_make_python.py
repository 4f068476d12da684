"""`make`: which Python it takes for the environment of the course."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize("version", ["(3, 10, 9)", "(3, 15, 0)"])
def test_a_python_for_which_packages_are_missing_is_refused_before_anything_is_installed(
    version: str, tmp_path: Path
) -> None:
    for tool in ("make", "sh"):
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / tool).symlink_to(found)
    python = tmp_path / "python3"
    python.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.version_info = {version}; exec(sys.argv[1])" "$2"\n'
    )
    python.chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for needed in ("pyproject.toml", "constraints.txt"):
        (tmp_path / needed).touch()
    told = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | {"PATH": str(tmp_path)}
    done = subprocess.run(["make", "doctor"], cwd=tmp_path, env=told, capture_output=True, text=True, timeout=60)
    assert done.stderr.startswith("streamskit needs Python 3.11 to 3.14, and none is on PATH.")
    assert done.returncode == 2
