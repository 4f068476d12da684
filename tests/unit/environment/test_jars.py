"""The jars, fetched by the real Ivy from a small Maven repository on loopback."""

import re
import shutil
import ssl
import subprocess
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from streamskit.common.errors import SetupError
from streamskit.environment import jars
from streamskit.environment.jars import broker_jars, ensure_jars, jars_are_here, spark_jars

IVY_FILE = """<ivy-module version="2.0">
  <info organisation="streamskit" module="jars"/>
  <configurations><conf name="spark"/><conf name="broker"/></configurations>
  <dependencies>
    <dependency conf="spark->default" org="org.test" name="connector" rev="1.0"/>
    <dependency conf="broker->default" org="org.test" name="kafka" rev="2.0"/>
  </dependencies>
</ivy-module>
"""

pytestmark = pytest.mark.slow


@dataclass
class Repository:
    """A Maven repository; `broken` is a jar whose transfer ends half-way, once."""

    server: ThreadingHTTPServer
    url: str
    requests: Counter[str] = field(default_factory=Counter)
    broken: str = ""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> Iterator[Repository]:
    folder = tmp_path / "repository"
    for name, version in (("connector", "1.0"), ("kafka", "2.0")):
        jar = folder / "org" / "test" / name / version / f"{name}-{version}.jar"
        jar.parent.mkdir(parents=True)
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("content", name * 10_000)
    (tmp_path / "ivy.xml").write_text(IVY_FILE)
    listed = [f"{digest(jar)}  {'spark' if 'connector' in jar.name else 'broker'}/{jar.name}\n"
              for jar in folder.rglob("*.jar")]  # fmt: skip
    (tmp_path / "jars.sha256").write_text("".join(listed))
    monkeypatch.setattr(jars, "CHECKSUMS", tmp_path / "jars.sha256")
    (tmp_path / "jvm").mkdir()
    (tmp_path / "jvm" / "Small.scala").write_text("package streamskit\nclass Small\n")
    monkeypatch.setattr(jars, "IVY_FILE", tmp_path / "ivy.xml")
    monkeypatch.setattr(jars, "SCALA_SOURCES", tmp_path / "jvm")
    monkeypatch.setattr(jars, "SMALL_JAR", ("org.test", "connector", "1.0"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.repository = made = Repository(server, f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    server.folder = folder  # type: ignore[attr-defined]
    monkeypatch.setenv("STREAMSKIT_MAVEN_URL", made.url)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield made
    server.shutdown()
    server.server_close()


class Handler(SimpleHTTPRequestHandler):
    def __init__(self, request: Any, address: Any, server: Any) -> None:
        self.repository: Repository = server.repository
        super().__init__(request, address, server, directory=str(server.folder))

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.repository.requests[name] += 1
        if name != self.repository.broken:
            return super().do_GET()
        self.repository.broken = ""
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"half of a jar")
        return None

    def log_message(self, *_: object) -> None:
        pass


def test_jars_are_fetched_and_compiled_once(repository: Repository, empty_cache: Path) -> None:
    assert not jars_are_here()
    said: list[str] = []
    ensure_jars(said.append)
    assert jars_are_here()
    assert "(2 jars," in said[0]
    # A slow machine is told in between how far it is.
    assert any(re.fullmatch(r"\.\.\. done in \d+ s\.", line) for line in said[1:])
    asked = repository.requests.total()
    said.clear()
    assert [jar.name for jar in broker_jars(said.append)] == ["kafka-2.0.jar"]
    connector, own = spark_jars(said.append)
    assert connector.name == "connector-1.0.jar"
    assert "streamskit/Small.class" in zipfile.ZipFile(own).namelist()
    assert said == []
    assert repository.requests.total() == asked


def test_classes_are_compiled_again_for_another_spark(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    spark_jars(lambda line: None)
    assert jars_are_here()
    monkeypatch.setattr("importlib.metadata.version", lambda package: "3.5.0")
    assert not jars_are_here()


def test_a_broken_transfer_is_a_sentence_and_the_next_try_goes_on_from_there(
    repository: Repository, empty_cache: Path
) -> None:
    repository.broken = "kafka-2.0.jar"
    with pytest.raises(SetupError, match=r"could not be fetched.*What has arrived is kept"):
        ensure_jars(lambda line: None)
    assert not jars_are_here()
    ensure_jars(lambda line: None)
    assert zipfile.is_zipfile(broker_jars()[0])
    assert repository.requests["connector-1.0.jar"] == 1


def digest(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def test_a_jar_that_is_another_one_is_refused_and_not_kept(repository: Repository, empty_cache: Path) -> None:
    jar = repository.server.folder / "org/test/kafka/2.0/kafka-2.0.jar"  # type: ignore[attr-defined]
    jar.write_bytes(jar.read_bytes() + b"evil")
    with pytest.raises(SetupError, match=r"The Maven repository sent something else.*kafka-2\.0\.jar is not the one"):
        ensure_jars(lambda line: None)
    assert not jars_are_here()
    assert not list((empty_cache / "jars").rglob("*.jar"))


@pytest.mark.parametrize(
    "url", ["http://mirror.example/maven", "ftp://127.0.0.1/", "mirror.example", "http://127.0.0.1.example"]
)
def test_a_mirror_that_anybody_on_the_way_can_speak_for_is_refused(
    url: str, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMSKIT_MAVEN_URL", url)
    with pytest.raises(SetupError, match="jars are fetched by https only, or by http from this machine itself"):
        ensure_jars(lambda line: None)


@pytest.mark.parametrize(
    "url", ["https://mirror.example", "http://localhost:8081/maven", "http://[::1]/", "file:///mirror"]
)
def test_other_mirrors_are_asked(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSKIT_MAVEN_URL", url)
    assert jars._mirror() == url


def test_no_network_with_an_empty_cache_is_a_sentence_that_names_the_log(
    repository: Repository, empty_cache: Path
) -> None:
    repository.server.shutdown()
    repository.server.server_close()
    with pytest.raises(SetupError, match="Check the network") as raised:
        ensure_jars(lambda line: None)
    log = empty_cache / "jars" / "ivy.log"
    assert str(log) in str(raised.value)
    assert "org.test" in log.read_text()
    assert "\n" not in str(raised.value)
    assert not list((empty_cache / "jars").glob("fetching-*"))


def test_two_programs_at_once_fetch_each_jar_once(repository: Repository) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: ensure_jars(lambda line: None), range(2))
    assert first == second
    assert repository.requests["kafka-2.0.jar"] == 1


def test_a_source_that_does_not_compile_is_a_sentence_that_names_the_log(
    repository: Repository, empty_cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "jvm" / "Small.scala").write_text("class {")
    with pytest.raises(SetupError, match="did not compile"):
        ensure_jars(lambda line: None)
    assert "Small.scala" in (empty_cache / "jars" / "scala.log").read_text()


def test_a_full_disk_is_a_sentence_before_anything_is_fetched(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 5 * 1024**2))
    with pytest.raises(SetupError, match="has 5 MB left"):
        ensure_jars(lambda line: None)
    assert not repository.requests


def test_a_cache_that_cannot_be_written_is_a_sentence(repository: Repository, empty_cache: Path) -> None:
    empty_cache.write_text("a file where the folder should be")
    with pytest.raises(SetupError, match=r"cannot be written .*Set STREAMSKIT_CACHE"):
        ensure_jars(lambda line: None)


@pytest.fixture
def certificate(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The certificate of the repository, which now speaks HTTPS, as one behind a company's proxy would."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    made, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*command.split(), "-out", str(made), "-keyout", str(key)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    repository.server.socket = context.wrap_socket(repository.server.socket, server_side=True)
    monkeypatch.setenv("STREAMSKIT_MAVEN_URL", repository.url.replace("http:", "https:"))
    return made


def test_java_trusts_the_certificates_that_python_trusts(
    certificate: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    ensure_jars(lambda line: None)
    assert repository.requests["kafka-2.0.jar"] == 1


def test_a_certificate_that_nobody_trusts_is_a_sentence(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(SetupError, match=r"does not trust the certificate.*Set SSL_CERT_FILE"):
        ensure_jars(lambda line: None)


def listed(section: str) -> set[str]:
    return set(re.findall(rf'conf="{section}->default".* name="([^"]+)"', jars.IVY_FILE.read_text()))


def test_no_jar_for_spark_is_one_that_pyspark_ships() -> None:
    shipped = {re.sub(r"-\d+(\.\w+)+(-\w+)?$", "", jar.stem) for jar in jars.pyspark_jars().glob("*.jar")}
    assert "kafka-clients" in listed("spark")
    assert "snappy-java" in shipped
    assert not listed("spark") & shipped


def test_java_goes_round_the_proxy_to_the_hosts_that_python_reaches_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://me:hush@proxy.corp:3128")
    through = ["-Dhttps.proxyHost=proxy.corp", "-Dhttps.proxyPort=3128"]
    assert jars._proxy_options() == through
    monkeypatch.setenv("NO_PROXY", "maven.corp, .example.org,10.0.0.7:8443,")
    direct = "localhost|127.*|[::1]|maven.corp|*.maven.corp|example.org|*.example.org|10.0.0.7|*.10.0.0.7"
    assert jars._proxy_options() == [f"-Dhttp.nonProxyHosts={direct}", *through]
