"""`make clean`: what it does in a folder that has all it looks at."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PYTHON = '#!/bin/sh\necho "$@: ${STREAMSKIT_BOOTSTRAP_SERVERS:-the own broker} of ${STREAMSKIT_PROJECT:-this folder}"\n'


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_clean_is_about_the_folder_s_own_broker_also_where_the_environment_names_another(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / ".venv" / ".ready").touch()
    (tmp_path / ".streamskit").mkdir()
    environment = os.environ | {"STREAMSKIT_BOOTSTRAP_SERVERS": "127.0.0.1:9", "STREAMSKIT_PROJECT": "/elsewhere"}
    done = subprocess.run(
        ["make", "clean"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert "-m streamskit broker clean: the own broker of this folder\n" in done.stdout
    assert not (tmp_path / ".streamskit").exists()
