"""Where Spark runs, as far as that can be told without Spark."""

import os
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pytest

import streamskit
from streamskit.common.errors import SetupError
from streamskit.environment import session, spark_processes


@pytest.mark.parametrize(
    ("master", "is_local", "is_here"),
    [
        ("local[*]", True, True),
        ("local", True, True),
        ("local-cluster[2,1,1024]", False, True),
        ("spark://127.0.0.1:7077", False, True),
        ("spark://localhost:7077", False, True),
        ("spark://spark.example.org:7077", False, False),
        ("spark://127.0.0.1.example.org:7077", False, False),
        ("yarn", False, False),
        ("k8s://https://127.0.0.1:6443", False, False),
    ],
)
def test_a_master_is_here_only_if_all_of_it_is(master: str, is_local: bool, is_here: bool) -> None:
    assert (spark_processes.is_local(master), spark_processes.is_on_this_machine(master)) == (is_local, is_here)


def test_executors_find_the_modules_that_this_process_finds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    inserted = tmp_path / "inserted"
    inserted.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/a", "/b", "/a"]))
    own_packages = [path for path in sys.path if path.endswith(("site-packages", "lib-dynload"))]
    monkeypatch.setattr(sys, "path", [str(tmp_path / "gone"), "", "inserted", *own_packages])
    found = spark_processes.python_path().split(os.pathsep)
    assert found[:4] == [str(tmp_path), "/a", "/b", str(inserted)]
    if not Path(streamskit.__file__).is_relative_to(sys.prefix):
        assert found[4:] == [str(Path(streamskit.__file__).parents[1])]


def test_workers_import_from_where_this_process_does_now_and_from_files_that_were_added(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    context = SimpleNamespace(_python_includes=["added.zip"])
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
        monkeypatch.setattr(sys, "path", [str(folder)])
        spark_processes.let_workers_import(context)  # type: ignore[arg-type]
        assert context._python_includes == ["added.zip", str(folder)]
    monkeypatch.setattr(sys, "path", [*map(str, folders), sysconfig.get_path("stdlib")])
    spark_processes.let_workers_import(context)  # type: ignore[arg-type]
    assert context._python_includes == ["added.zip", *map(str, reversed(folders))]


def test_a_session_that_runs_elsewhere_is_not_handed_out() -> None:
    running = SimpleNamespace(sparkContext=SimpleNamespace(master="local[*]"))
    session._check_master(running, None)  # type: ignore[arg-type]
    session._check_master(running, "local[*]")  # type: ignore[arg-type]
    with pytest.raises(
        SetupError, match=r"on local\[\*\], and only one SparkContext can live in a process; spark://h:1 was"
    ) as refused:
        session._check_master(running, "spark://h:1")  # type: ignore[arg-type]
    # A cluster has another address after a restart, so that the one that was asked for is no advice.
    assert str(refused.value).count("spark://h:1") == 1
    assert str(refused.value).endswith("restart the kernel and run the notebook from its first cell.")
