"""The wheel, in an environment of its own. `make wheel` installs anew what it needs; here that is there."""

import site
import venv
from pathlib import Path

import pytest

import streamskit
from tests import wheel


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.soak
def test_the_wheel_runs_where_the_project_is_not(tmp_path: Path) -> None:
    made = wheel.build(tmp_path / "dist")
    project, folder = tmp_path / "project", tmp_path / "environment"
    project.mkdir()
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    wheel.run(str(python), "-m", "pip", "install", "-q", "--no-index", "--no-deps", str(made))
    packages = next(folder.glob("lib/*/site-packages"))
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    counted, where = wheel.try_out(python, project)
    assert counted == "1"
    assert where == f"{streamskit.__version__} {packages / 'streamskit' / '__init__.py'}"
