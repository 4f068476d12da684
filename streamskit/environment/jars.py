"""The jars that PySpark lacks: Spark's Kafka connector, a Kafka broker, and streamskit's own Scala.

PySpark ships Apache Ivy and the Scala compiler, so neither Maven nor a Java compiler has to be installed.

The broker is newer than the clients beside it: Spark's connector is built with those of Kafka 3.9, and keeps them.
"""

import hashlib
import importlib.metadata
import importlib.util
import ipaddress
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from xml.sax.saxutils import quoteattr

from filelock import FileLock, Timeout

from streamskit.common.errors import SetupError
from streamskit.common.paths import cache_dir
from streamskit.environment import checksums
from streamskit.environment.java import find_java, java_environment
from streamskit.environment.trust import java_trust_options

IVY_FILE = Path(__file__).with_name("ivy.xml")
CHECKSUMS = Path(__file__).with_name("jars.sha256")
MIRROR = "STREAMSKIT_MAVEN_URL"
SCALA_SOURCES = Path(__file__).parents[1] / "jvm"
SPACE_NEEDED = 300 * 1024**2
SMALL_JAR = ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0")
SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <timeout-constraints>
    <timeout-constraint name="patient" connectionTimeout="15000" readTimeout="30000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="central" m2compatible="true" usepoms="false" timeoutConstraint="patient"{root}/>
  </resolvers>
</ivysettings>
"""
TellProgress = Callable[[str], object]
"""A function that is called with a line on the progress of something slow."""


def ensure_jars(progress: TellProgress = print) -> Path:
    """Fetch and compile the jars unless they are there; return the folder that holds them.

    The network is needed once for each user. `progress` is called with a line of text now and then.
    STREAMSKIT_MAVEN_URL names the root of another Maven repository than Maven Central.

    Raises:
        SetupError: a jar cannot be fetched or has another checksum, the disk is full, or there is no Java.

    >>> ensure_jars()  # doctest: +SKIP
    Fetching Kafka and its Spark connector (50 jars, 53 MB) ...
    ... done in 15 s.
    """
    folder, extension = _folder(), _extension()
    if not folder.is_dir():
        with _alone("fetch", progress):
            if not folder.is_dir():
                _fetch(folder, progress)
    checksums.verify(folder, CHECKSUMS)
    if not extension.is_file():
        with _alone("compile", progress):
            if not extension.is_file():
                _compile(extension, progress)
    return folder


def spark_jars(progress: TellProgress = print) -> list[Path]:
    """The jars that Spark needs to read and write Kafka, for `spark.jars`; fetched first if need be.

    >>> [jar.name for jar in spark_jars()]  # doctest: +SKIP
    ['commons-pool2-2.13.1.jar', 'kafka-clients-3.9.2.jar', ...]
    """
    return [*_jars_in(ensure_jars(progress) / "spark"), _extension()]


def broker_jars(progress: TellProgress = print) -> list[Path]:
    """The class path of the Kafka broker; fetched first if need be.

    >>> os.pathsep.join(map(str, broker_jars()))  # doctest: +SKIP
    """
    return _jars_in(ensure_jars(progress) / "broker")


def jars_are_here() -> bool:
    """Whether nothing has to be fetched (or compiled) any more."""
    return _folder().is_dir() and _extension().is_file()


def check_jars() -> None:
    """Make sure that the jars that were fetched are whole.

    Raises:
        SetupError: one is missing, differs, or was added.

    >>> check_jars()  # doctest: +SKIP
    """
    checksums.verify(_folder(), CHECKSUMS)


def ask_repository() -> None:
    """Fetch one small jar, to see whether the Maven repository can be reached.

    Raises:
        SetupError: it cannot.

    >>> ask_repository()  # doctest: +SKIP
    """
    with _alone("fetch", lambda line: None), tempfile.TemporaryDirectory() as scratch:
        _ask(Path(scratch), cache_dir() / "jars" / "ivy.log")


def pyspark_jars() -> Path:
    """The folder of the jars that PySpark ships.

    Raises:
        SetupError: PySpark is not installed.
    """
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise SetupError("PySpark is not installed. Run `make lab`, or `pip install -e .` in the project's folder.")
    return Path(package.origin).parent / "jars"


def _folder() -> Path:
    return cache_dir() / "jars" / hashlib.sha256(IVY_FILE.read_bytes() + SETTINGS.encode()).hexdigest()[:12]


def _ivy_cache() -> Path:
    return _folder().with_name(f"{_folder().name}-ivy")


def _extension() -> Path:
    content = b"".join(source.read_bytes() for source in sorted(SCALA_SOURCES.glob("*.scala")))
    # What was compiled for one Spark may not run on another.
    made_for = f"{_folder().name} {importlib.metadata.version('pyspark')} ".encode()
    return _folder().with_name(f"streamskit-{hashlib.sha256(made_for + content).hexdigest()[:12]}.jar")


def _jars_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jar"))


@contextmanager
def _alone(task: str, progress: TellProgress) -> Iterator[None]:
    """Hold the lock of one task among all processes of this user, after a look at the disk."""
    home = cache_dir() / "jars"
    try:
        home.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(home).free
    except OSError as cause:
        raise SetupError(
            f"{home} cannot be written ({cause.strerror}). Set STREAMSKIT_CACHE to a folder of your own."
        ) from cause
    if free < SPACE_NEEDED:
        raise SetupError(
            f"The disk of {home} has {free // 1024**2} MB left, and the jars need "
            f"{SPACE_NEEDED // 1024**2} MB. Free some space, or set STREAMSKIT_CACHE to a folder on another "
            "disk."
        )
    lock = FileLock(home / f"{task}.lock", thread_local=False)
    try:
        lock.acquire(timeout=0.5)
    except Timeout:
        progress(f"Another program of yours holds {lock.lock_file}; waiting for it to end ...")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _fetch(folder: Path, progress: TellProgress) -> None:
    number = IVY_FILE.read_text().count("<dependency ")
    progress(f"Fetching Kafka and its Spark connector ({number} jars, 53 MB), once for all projects ...")
    started = time.monotonic()
    home = folder.parent
    log = home / "ivy.log"
    for leftover in home.glob("fetching-*"):  # of a try that was killed: we hold the lock
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=home, prefix="fetching-") as scratch:
        arrived = Path(scratch) / "jars"
        _ask(Path(scratch), log)  # where nothing answers, one time-out is enough
        retrieve = f"{arrived}/[conf]/[artifact]-[revision].[ext]"
        _run_ivy(Path(scratch), log, progress, ["-ivy", str(IVY_FILE), "-retrieve", retrieve])
        if not _jars_in(arrived / "spark") or not _jars_in(arrived / "broker"):
            raise SetupError(f"Ivy found no jars, though it reported none missing. Its log is {log}.")
        try:
            checksums.verify(arrived, CHECKSUMS)
        except SetupError as wrong:
            shutil.rmtree(_ivy_cache(), ignore_errors=True)  # a wrong jar would come from there the next time
            raise SetupError(f"The Maven repository sent something else. {wrong}") from None
        arrived.rename(folder)
    shutil.rmtree(_ivy_cache(), ignore_errors=True)
    progress(f"... done in {time.monotonic() - started:.0f} s.")


def _ask(scratch: Path, log: Path) -> None:
    _run_ivy(scratch, log, lambda line: None, ["-dependency", *SMALL_JAR])


def _run_ivy(scratch: Path, log: Path, progress: TellProgress, request: list[str]) -> None:
    settings = scratch / "settings.xml"
    mirror = _mirror()
    settings.write_text(SETTINGS.format(root=f" root={quoteattr(mirror)}" if mirror else ""))
    command = [str(find_java().executable), *_proxy_options(), *java_trust_options(scratch)]
    command += ["-cp", f"{pyspark_jars()}/*", "org.apache.ivy.Main", "-settings", str(settings)]
    # Ivy's own cache outlives a failed try, so that the next one goes on from there.
    command += ["-cache", str(_ivy_cache()), *request]
    with log.open("w") as words:
        ivy = subprocess.Popen(
            command,
            env=java_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            _follow(ivy, words, progress)
        finally:
            ivy.kill()  # for a user who interrupts; else it has ended already
            ivy.wait()
    if ivy.returncode != 0:
        raise SetupError(_why_ivy_failed(log))


def _mirror() -> str | None:
    """Return the Maven repository to fetch from; None for Maven Central.

    Raises:
        SetupError: anybody on the way to it could change what it sends.
    """
    mirror = os.environ.get(MIRROR)
    if not mirror:
        return None
    address = urllib.parse.urlsplit(mirror)
    if address.scheme in ("https", "file") or (address.scheme == "http" and _is_loopback(address.hostname or "")):
        return mirror
    raise SetupError(
        f"{MIRROR} is {mirror!r}: jars are fetched by https only, or by http from this machine itself. Write its "
        "address with https://."
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _follow(ivy: subprocess.Popen[str], words: IO[str], progress: TellProgress) -> None:
    assert ivy.stdout is not None
    arrived, next_report = 0, time.monotonic() + 10
    for line in ivy.stdout:
        words.write(line)
        arrived += "[SUCCESSFUL ]" in line
        if time.monotonic() > next_report:
            progress(f"... {arrived} jars so far" if arrived else "... asking for the first one")
            next_report += 10
    ivy.wait()


def _proxy_options() -> list[str]:
    """Java's names for the proxies that Python and pip would use (HTTPS_PROXY and the system's settings)."""
    options, proxies = [], urllib.request.getproxies()
    if direct := _direct_hosts(proxies.pop("no", "")):
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(direct)}")  # for https, too
    for scheme, address in proxies.items():
        proxy = urllib.parse.urlsplit(address if "://" in address else f"http://{address}")
        if scheme in ("http", "https") and proxy.hostname:
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 80}"]
    return options


def _direct_hosts(no_proxy: str) -> list[str]:
    """Return Java's patterns for the hosts in NO_PROXY, each of which also stands for the hosts below it."""
    # Java knows no ports there.
    names = [name.partition(":")[0] if name.count(":") == 1 else name for name in re.split(r"[\s,]+", no_proxy)]
    hosts = [host for name in names if (host := name.lstrip("."))]
    patterns = [pattern for host in hosts for pattern in ([host] if host == "*" else [host, f"*.{host}"])]
    return ["localhost", "127.*", "[::1]", *patterns] if patterns else []  # the first are Java's own, if it gets none


def _why_ivy_failed(log: Path) -> str:
    words = log.read_text()
    kept = f"What has arrived is kept. Ivy's own words are in {log}."
    if "No space left on device" in words:
        return f"The disk of {log.parent} is full. Free some space and try again. {kept}"
    if "PKIX" in words:
        return (
            "The jars were not fetched: Java does not trust the certificate of the Maven repository, or of a "
            "proxy before it. Set SSL_CERT_FILE to the file of certificate authorities of your network. "
            f"{kept}"
        )
    return (
        "The jars of Kafka and its Spark connector are not in the cache and could not be fetched. Check the "
        f"network (STREAMSKIT_MAVEN_URL names a Maven repository that yours can reach) and try again. {kept}"
    )


def _compile(target: Path, progress: TellProgress) -> None:
    progress("Compiling streamskit's own classes for Spark ...")
    sources = sorted(map(str, SCALA_SOURCES.glob("*.scala")))
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="compiling-") as scratch:
        draft = Path(scratch) / "streamskit.jar"
        class_path = f"{pyspark_jars()}/*{os.pathsep}{_folder() / 'spark'}/*"
        command = [str(find_java().executable), "-XX:TieredStopAtLevel=1", "-cp", class_path]
        command += ["scala.tools.nsc.Main", "-usejavacp", "-d", str(draft), *sources]
        done = subprocess.run(command, env=java_environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0 or not draft.is_file():
            log = target.parent / "scala.log"
            log.write_text(done.stdout + done.stderr)
            raise SetupError(f"streamskit's own Scala classes did not compile. The compiler's output is in {log}.")
        draft.rename(target)
