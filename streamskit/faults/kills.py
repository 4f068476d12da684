"""Processes that are killed with signal 9: a driver, an executor, a query instance."""

from streamskit.cluster import Cluster
from streamskit.common.errors import StreamsError
from streamskit.environment.processes import eventually
from streamskit.faults.driver import Driver
from streamskit.faults.fault import Fault
from streamskit.queries.instances import Instances
from streamskit.queries.metadata import HostInfo

REPLACED_SECONDS = 60.0


def kill_driver(driver: Driver) -> Fault:
    """Kill the process that runs an application, and its Java, as a power failure in a micro-batch would.

    Args:
        driver: the application, in a process of its own.

    Raises:
        StreamsError: it is no `Driver`, or does not run.

    >>> with kill_driver(driver):  # doctest: +SKIP
    ...     driver.state
    'KILLED'
    """
    if not isinstance(driver, Driver):
        raise StreamsError(
            f"kill_driver() kills a Driver, an application in a process of its own, and this is a "
            f"{type(driver).__name__}: killing the process of this notebook would lose the notebook. Write "
            "driver = faults.Driver(build, 'an-id', broker.bootstrap_servers)."
        )
    pid = driver.pid
    driver.kill()
    return Fault(
        f"The driver of '{driver.application_id}', process {pid}, was killed with signal 9, and its Java with it.",
        "what it had not finished is in no table; after undo() its last micro-batch is run again: nothing is lost, and "
        "outputs of that batch may appear twice, identical to the letter",
        "undo() starts it again, where its checkpoint says",
        lambda: None if driver.is_running else driver.start(),
    )


def kill_executor(cluster: Cluster, executor: str | None = None) -> Fault:
    """Kill an executor of a cluster: its tasks fail in the middle, and Spark runs them again elsewhere.

    Args:
        cluster: the cluster, which this program has started.
        executor: which one, by its `id`; the first when not given.

    Raises:
        StreamsError: there is no such executor, or this program did not start the cluster.

    >>> fault = kill_executor(cluster)  # doctest: +SKIP
    >>> cluster.executors()  # one is gone; a moment later another one has come  # doctest: +SKIP
    """
    if not isinstance(cluster, Cluster):
        raise StreamsError(
            f"kill_executor() kills executors of a Cluster that this program has started, and this is "
            f"{cluster!r}: others may need what runs elsewhere."
        )
    before = len(cluster.executors())
    killed = cluster.kill_executor(executor)

    def await_another() -> None:
        if not eventually(lambda: len(cluster.executors()) >= before, REPLACED_SECONDS):
            raise StreamsError(
                f"Spark has not replaced executor {killed.id} within {REPLACED_SECONDS:.0f} s: is {killed.worker} "
                "alive (cluster.workers()), and does the application run?"
            )

    return Fault(
        f"Executor {killed.id} of '{killed.application}', process {killed.pid} on {killed.worker}, was killed with "
        "signal 9.",
        "the application's state stays RUNNING; its tasks run again on other executors, and cluster.executors() shows "
        "a new one soon",
        "nothing to do: its worker starts another; undo() waits until it is there",
        await_another,
    )


def kill_instance(instances: Instances, server: HostInfo | str | None = None) -> Fault:
    """Kill a query instance: it cannot leave the group, so the others believe it alive for its session timeout.

    Args:
        instances: the instances, which this program has started.
        server: which one, by where it answers; the first that runs when not given.

    Raises:
        StreamsError: there is no such instance, or this program did not start it.

    >>> with kill_instance(instances):  # doctest: +SKIP
    ...     client.store("counts").get("KO")  # a standby replica answers, or 503 until another has restored it
    """
    if not isinstance(instances, Instances):
        raise StreamsError(
            f"kill_instance() kills one of the Instances that this program has started, and this is a "
            f"{type(instances).__name__}."
        )
    running = list(instances)
    if server is None and not running:
        raise StreamsError(f"{instances!r}: none runs that could be killed. Start one: instances.start().")
    host = running[0] if server is None else HostInfo.of(str(server))
    instances.kill(host)
    return Fault(
        f"The instance at {host} was killed with signal 9.",
        "for its session timeout the others consider it alive: standby replicas answer for its keys, or a 503; then "
        "its partitions move, as ClusterView shows. No answer is wrong",
        "undo() starts it again at the same port, where it goes on with the stores it had",
        lambda: None if host in list(instances) else instances.start(host.port),
    )
