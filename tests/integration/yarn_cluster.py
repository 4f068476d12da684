"""A YARN cluster for tests: Hadoop's resource manager and node managers, each an ordinary Java process on loopback.

It is no dependency of streamskit: `python -m tests.integration.yarn_cluster` fetches what PySpark lacks of it once for
each user (64 MB), by the same Ivy and from the same repository as the jars.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import ProxyHandler, build_opener
from xml.sax.saxutils import escape

from streamskit.broker.settings import HOST, free_ports
from streamskit.common.paths import cache_dir
from streamskit.environment import checksums, jars
from streamskit.environment.java import find_java
from streamskit.environment.processes import Dependent, alive, wait_until

HADOOP, BOUNCY_CASTLE = "3.5.0", "1.82"
IVY_FILE = f"""<ivy-module version="2.0">
  <info organisation="streamskit" module="yarn"/>
  <dependencies>
    <dependency org="org.apache.hadoop" name="hadoop-client-minicluster" rev="{HADOOP}" transitive="false"/>
    <dependency org="org.bouncycastle" name="bcprov-jdk18on" rev="{BOUNCY_CASTLE}" transitive="false"/>
    <dependency org="org.bouncycastle" name="bcpkix-jdk18on" rev="{BOUNCY_CASTLE}" transitive="false"/>
    <dependency org="org.bouncycastle" name="bcutil-jdk18on" rev="{BOUNCY_CASTLE}" transitive="false"/>
  </dependencies>
</ivy-module>
"""
CHECKSUMS = Path(__file__).with_name("yarn_cluster.sha256")
SERVER = "org.apache.hadoop.yarn.server"
RESOURCE_MANAGER = f"{SERVER}.resourcemanager.ResourceManager"
NODE_MANAGER = f"{SERVER}.nodemanager.NodeManager"
LOGGING = """rootLogger.level = info
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


def folder() -> Path:
    """Return where the jars are."""
    return cache_dir() / f"yarn-{HADOOP}"


def is_here() -> bool:
    """Return whether they were fetched."""
    return folder().is_dir()


def fetch() -> None:
    """Fetch the jars.

    Raises:
        SetupError: one cannot be fetched, or is not the one that is known.
    """
    if is_here():
        return
    home = cache_dir()
    with tempfile.TemporaryDirectory(dir=home, prefix="yarn-") as name:
        scratch = Path(name)
        (scratch / "ivy.xml").write_text(IVY_FILE)
        request = ["-ivy", str(scratch / "ivy.xml"), "-retrieve", f"{scratch}/jars/[artifact]-[revision].[ext]"]
        jars._run_ivy(scratch, home / "yarn-ivy.log", print, request)
        checksums.verify(scratch / "jars", CHECKSUMS)
        (scratch / "jars").rename(folder())
    shutil.rmtree(jars._ivy_cache(), ignore_errors=True)


@dataclass
class YarnCluster:
    """A cluster that runs: the folder of its settings (HADOOP_CONF_DIR), its page, its processes."""

    settings: Path
    page: str
    nodes: list[Dependent]

    def containers(self) -> int:
        """Return how many containers run: one for each application's master, and its executors."""
        with build_opener(ProxyHandler({})).open(f"{self.page}/ws/v1/cluster/metrics", timeout=10) as answer:
            return int(json.load(answer)["clusterMetrics"]["containersAllocated"])

    def nodes_alive(self) -> int:
        """Return how many node managers have registered and not been lost."""
        with build_opener(ProxyHandler({})).open(f"{self.page}/ws/v1/cluster/metrics", timeout=10) as answer:
            return int(json.load(answer)["clusterMetrics"]["activeNodes"])


@contextmanager
def running(nodes: int = 2) -> Iterator[YarnCluster]:
    """Run a resource manager and so many node managers, and end them.

    Raises:
        SetupError: the jars cannot be fetched.
    """
    fetch()
    with ExitStack() as ends:
        home = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="yarn-cluster-")))
        names = ("", "scheduler.", "resource-tracker.", "admin.", "webapp.")
        ports = {name: f"{HOST}:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)}
        shared = {f"yarn.resourcemanager.{name}address": address for name, address in ports.items()} | {
            "yarn.resourcemanager.bind-host": HOST,
            "yarn.resourcemanager.scheduler.class": (
                f"{SERVER}.resourcemanager.scheduler.fifo.FifoScheduler"  # the default one needs a file with queues
            ),
            "yarn.scheduler.minimum-allocation-mb": "256",
        }
        manager = _start(home / "manager", RESOURCE_MANAGER, shared)
        ends.callback(manager.end)
        cluster = YarnCluster(home / "manager", f"http://{ports['webapp.']}", [])
        wait_until(lambda: _answers(cluster, manager), "an answer of YARN's resource manager", 60)
        for number in range(nodes):
            own = {
                f"yarn.nodemanager.{name}address": f"{HOST}:0"
                for name in ("", "localizer.", "collector-service.", "webapp.")
            } | {
                "yarn.nodemanager.hostname": HOST,
                "yarn.nodemanager.vmem-check-enabled": "false",
                "yarn.nodemanager.disk-health-checker.enable": "false",
                "yarn.nodemanager.resource.memory-mb": "4096",
                "yarn.nodemanager.resource.cpu-vcores": "4",
                "yarn.nodemanager.local-dirs": str(home / f"local-{number}"),
                "yarn.nodemanager.log-dirs": str(home / f"logs-{number}"),
            }
            cluster.nodes.append(_start(home / f"node-{number}", NODE_MANAGER, shared | own))
            ends.callback(cluster.nodes[-1].end)
        wait_until(lambda: cluster.nodes_alive() == nodes, "YARN's nodes", 60)
        yield cluster


def _answers(cluster: YarnCluster, manager: Dependent) -> bool:
    assert alive(manager.process), (cluster.settings / "console.log").read_text()[-3000:]
    try:
        return cluster.nodes_alive() >= 0
    except OSError:
        return False


def _start(home: Path, runs: str, settings: dict[str, str]) -> Dependent:
    home.mkdir()
    (home / "log4j2.properties").write_text(LOGGING)
    core = {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(home / "tmp")}
    for name, values in (("core-site", core), ("yarn-site", settings)):
        properties = "".join(
            f"<property><name>{key}</name><value>{escape(value)}</value></property>" for key, value in values.items()
        )
        (home / f"{name}.xml").write_text(f"<configuration>{properties}</configuration>")
    path = os.pathsep.join([str(home), f"{folder()}/*", f"{jars.pyspark_jars()}/*"])
    java = [str(find_java().executable), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return Dependent([*java, "-cp", path, runs], home, home / "console.log", os.environ)


if __name__ == "__main__":
    fetch()
