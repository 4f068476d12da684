"""The contracts of `[tool.importlinter]` hold a package together, and `make lint` fails where an import breaks one."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LAYERS = [
    name
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    for layer in contract.get("layers", [])
    for name in layer.split(" | ")
]


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """A package with the layers of the real one and nothing in them, under the same contracts."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in LAYERS:
        write(tmp_path, f"{name}/__init__.py")
    write(tmp_path, "__init__.py")
    write(tmp_path, "dsl/kstream.py")
    write(tmp_path, "dsl/ktable.py", "import streamskit.dsl.kstream")  # the one import that is let pass
    return tmp_path


def write(folder: Path, module: str, text: str = "") -> None:
    path = folder / "streamskit" / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def lint(folder: Path) -> tuple[int, str]:
    """Return the exit code of the linter for a package, and what it said."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=240, env={"PYTHONPATH": str(folder)}
    )
    return done.returncode, re.sub(r"\s+", " ", done.stdout + done.stderr)


def test_imports_from_layers_below_are_kept(skeleton: Path) -> None:
    write(skeleton, "runtime/streams.py", "import streamskit.dsl.ktable\nimport streamskit.common")
    code, said = lint(skeleton)
    assert code == 0, said
    assert "2 kept, 0 broken" in said


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("common/errors.py", "streamskit.dsl"),  # from far above
        ("planning/plan.py", "streamskit.execution"),  # from the layer just above
        ("faults/driver.py", "streamskit.testing"),  # from one beside it
    ],
)
def test_an_import_from_a_layer_that_is_not_below_breaks_the_contract(
    skeleton: Path, module: str, imported: str
) -> None:
    write(skeleton, module, f"from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import {imported}\n")
    code, said = lint(skeleton)
    assert code == 1, said
    assert "Each layer imports only those below it BROKEN" in said
    assert f"streamskit.{module.removesuffix('.py').replace('/', '.')} -> {imported} (l.4)" in said


def test_a_cycle_within_a_package_breaks_the_contract(skeleton: Path) -> None:
    write(skeleton, "state/stores.py", "import streamskit.state.rows")
    write(skeleton, "state/rows.py", "import streamskit.state.stores")
    code, said = lint(skeleton)
    assert code == 1, said
    assert "Within a package, too, imports run one way BROKEN" in said


def test_a_package_without_a_layer_breaks_the_contract(skeleton: Path) -> None:
    write(skeleton, "misc/__init__.py")
    code, said = lint(skeleton)
    assert code == 1, said
    assert "streamskit.misc" in said
