import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import streamskit

ROOT = Path(__file__).parents[3]

FACE = re.compile(r"(?:from|import) (streamskit[\w.]*)")


def test_every_public_name_can_be_imported() -> None:
    for name in streamskit.__all__:
        assert getattr(streamskit, name).__name__ == name
        assert name in dir(streamskit)


@pytest.mark.parametrize("face", streamskit.FACES)
def test_a_face_of_the_package_lists_what_it_offers(face: str) -> None:
    module = importlib.import_module(face)
    assert module.__all__ == sorted(module.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize("folder", ["notebooks", "labs", "labs/source"])
def test_lessons_and_labs_import_from_the_faces_only(folder: str) -> None:
    found = {
        (path.name, module)
        for path in (ROOT / folder).rglob("*.ipynb")
        for cell in json.loads(path.read_text())["cells"]
        if cell["cell_type"] == "code"
        for line in "".join(cell["source"]).splitlines()
        for module in FACE.findall(line)
        if module not in streamskit.FACES
    }
    assert found == set()


def test_importing_the_package_alone_loads_neither_spark_nor_pandas() -> None:
    code = "import sys, streamskit; print({'pyspark', 'pandas', 'kafka'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
