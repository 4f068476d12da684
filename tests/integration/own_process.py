"""Programs that have a Python process of their own, for what would end or change that of the tests."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def seen_by(program: str, *arguments: str, seconds: float = 240) -> Any:
    """Run a program of this package, and return what it says in JSON, in its last line.

    Args:
        program: the name of its module.
        arguments: those of its command line.
        seconds: how long it may take.
    """
    ran = subprocess.run(
        [sys.executable, "-m", f"tests.integration.{program}", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])
