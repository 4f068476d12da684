"""A Kafka image made without a registry: this machine's Java and busybox, and the broker's jars."""

import io
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from streamskit.environment.jars import broker_jars
from streamskit.environment.java import find_java

IMAGE = "streamskit/kafka:test"
CONTEXT = Path(__file__).with_name("context")
NEVER_NEEDED = {"jmods", "man", "docs", "include", "legal", "src.zip", "demo", "sample"}
APPLETS = ("sh", "sed", "env", "tr", "sleep", "echo", "cat", "ls", "hostname")
LIBRARY_FOLDERS = ("/lib", "/usr/lib", "/lib64")


class CannotBuildError(Exception):
    """This machine lacks what the image is made of; the message says what."""


def build_image(tag: str = IMAGE) -> str:
    """Build the image in the engine that Docker's settings lead to, and return its tag."""
    busybox = shutil.which("busybox")
    if busybox is None:
        raise CannotBuildError("The test image needs busybox (Debian: busybox-static), which is not installed.")
    java = java_home()
    importing = subprocess.Popen(
        [
            "docker",
            "import",
            "--change=ENV PATH=/opt/java/bin:/bin",
            f"--change=ENV LD_LIBRARY_PATH={':'.join(LIBRARY_FOLDERS)}",
            '--change=CMD ["/etc/kafka/docker/run"]',
            "-",
            tag,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert importing.stdin is not None
    with importing.stdin as pipe, tarfile.open(fileobj=pipe, mode="w|", dereference=True) as image:
        add_folders(image, ("tmp", "etc/kafka/docker", "proc", "sys", "dev", "root"))
        add_busybox(image, Path(busybox))
        for file in java_files(java):
            image.add(file, f"opt/java/{file.relative_to(java)}", recursive=False)
        for library in libraries([Path(busybox), *java_files(java)]):
            if not library.is_relative_to(java):
                image.add(library, str(library).lstrip("/"))
        for jar in broker_jars():
            image.add(jar, f"opt/kafka/libs/{jar.name}")
        add_text(image, "etc/kafka/docker/run", (CONTEXT / "run").read_text(), mode=0o755)
        add_text(image, "etc/kafka/docker/log4j2.properties", (CONTEXT / "log4j2.properties").read_text())
        add_text(image, "etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
        add_text(image, "etc/nsswitch.conf", "hosts: files dns\n")
    if importing.wait() != 0:
        raise CannotBuildError("`docker import` failed; its words are above.")
    return tag


def java_home() -> Path:
    """The folder of the real Java, also where `find_java` gives a small shim for it."""
    command = [str(find_java().executable), "-XshowSettings:properties", "-version"]
    settings = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found = re.search(r"java\.home = (.+)", settings)
    assert found is not None
    return Path(found[1].strip()).resolve()


def java_files(home: Path) -> list[Path]:
    """The files of a Java that running it takes."""
    return [file for file in home.rglob("*") if file.is_file() and file.relative_to(home).parts[0] not in NEVER_NEEDED]


def libraries(files: Iterable[Path]) -> list[Path]:
    """The shared libraries that the programs among the files load, and those that look up host names."""
    programs = [str(file) for file in files if file.suffix == ".so" or os.access(file, os.X_OK)]
    said = subprocess.run(["ldd", *programs], capture_output=True, text=True).stdout
    found = {Path(path) for path in re.findall(r"(?:=> |^\t)(/\S+) \(0x", said, re.MULTILINE)}
    found |= {path for folder in {file.parent for file in found} for path in folder.glob("libnss_*.so.2")}
    return sorted(found)


def add_folders(image: tarfile.TarFile, names: Iterable[str]) -> None:
    """Add empty folders."""
    for name in names:
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        image.addfile(folder)


def add_busybox(image: tarfile.TarFile, busybox: Path) -> None:
    """Add busybox and the commands that a start script needs as links to it."""
    image.add(busybox, "bin/busybox")
    for name in APPLETS:
        link = tarfile.TarInfo(f"bin/{name}")
        link.type, link.linkname = tarfile.SYMTYPE, "busybox"
        image.addfile(link)


def add_text(image: tarfile.TarFile, name: str, text: str, mode: int = 0o644) -> None:
    """Add a text file."""
    file = tarfile.TarInfo(name)
    file.size, file.mode = len(text.encode()), mode
    image.addfile(file, io.BytesIO(text.encode()))
