"""Only one `KafkaStreams` runs an application: a lock on its folder ensures that, and across machines the broker does.

While it runs, it is a member of the consumer group `<application id>-runner`. Each member only says who it is; the
group's leader, which Kafka keeps as long as it stays, decides which of them runs the application.
"""

import json
import logging
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from kafka.admin import MemberToRemove
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.errors import AuthorizationError, KafkaError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import BrokerError, StreamsError
from streamskit.environment.identity import machine_id, process_start
from streamskit.kafka.access import Right, no_right
from streamskit.kafka.connection import admin_client, reason
from streamskit.kafka.group_member import GroupMember

logger = logging.getLogger("streamskit")

SESSION_SECONDS = 10.0
"""After how long without a sign of life a runner on another machine counts as dead."""

QUIET_SECONDS = 1.5
"""How long to wait for the group's answer before logging that."""

PATIENCE_SECONDS = 60.0
RETRY_SECONDS = 0.5
CLIENT = "streamskit-runner/{pid}/{started}/{machine}"
"""The client id of a process in the group."""


@dataclass(frozen=True)
class Claim:
    """A candidate for running an application: a process on a machine, and its folder.

    `started` is what `process_start` returns for the process, `since` when it applied, and `running_since` when it was
    chosen (0 if it was not), in seconds since 1970 by the clock of its machine. For a chosen one, `member` is its name
    in the group when it was last chosen, and `generation` is the group's generation then.
    """

    machine: str
    pid: int
    started: str
    folder: str
    since: float
    running_since: float = 0.0
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    member: str = ""
    generation: int = 0

    @staticmethod
    def of_this_process(folder: Path) -> "Claim":
        """Return the claim of this process."""
        started = process_start(os.getpid()) or ""
        return Claim(_machine(), os.getpid(), started, str(folder.absolute()), time.time())

    def to_bytes(self) -> bytes:
        """Return it as bytes, to be sent to the group."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_bytes(data: bytes | None) -> "Claim | None":
        """Return the claim that was received; None if it is none. Unknown fields of other versions are ignored."""
        try:
            said = json.loads(data or b"")
            return Claim(**{name: said[name] for name in Claim.__dataclass_fields__ if name in said})
        except (ValueError, TypeError):
            return None

    @property
    def client_id(self) -> str:
        """Which process it is, as a member's client id: the broker shows it even while it shows no claims."""
        return CLIENT.format(pid=self.pid, started=self.started, machine=self.machine)

    @staticmethod
    def from_client_id(client_id: str) -> "Claim | None":
        """Return the claim that a member's client id stands for; None if the id is not one of ours."""
        said = re.fullmatch(CLIENT.format(pid=r"(\d+)", started="([^/]*)", machine="(.*)"), client_id)
        return None if said is None else Claim(machine=said[3], pid=int(said[1]), started=said[2], folder="", since=0.0)

    @property
    def is_dead(self) -> bool:
        """Whether it was a process on this machine that has ended."""
        return self.machine == _machine() and process_start(self.pid) not in (self.started, "")

    def __str__(self) -> str:
        place = self.machine.partition(" ")[0]
        began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.running_since or self.since))
        return f"process {self.pid} on '{place}', since {began}, with the folder {self.folder}"


def chosen(claims: Mapping[str, Claim]) -> Claim:
    """Return who of several runs the application: the one that does already, or else who asked first.

    If two run, one was out of touch and the other has taken over since. The group forgot the first and gave it another
    name when it came back, so the one that has kept its name stays. The clocks of two machines are compared only if
    nothing else distinguishes the claims.

    Args:
        claims: the claim of each member of the group, by its current name there.
    """

    def rank(member: str) -> tuple[bool, bool, int, float, float, str]:
        claim = claims[member]
        runs = claim.running_since > 0
        has_stayed = runs and claim.member == member
        return not has_stayed, not runs, -claim.generation, -claim.running_since, claim.since, claim.id

    first = min(claims, key=rank)
    return replace(claims[first], member=first)


class ApplicationLock:
    """Held by the `KafkaStreams` that runs an application; the system lets go of it when the process ends.

    Args:
        application_id: the application.
        folder: where it keeps its checkpoints; the lock file is beside it.

    Mirrors the lock of Kafka Streams on its state directory.
    """

    def __init__(self, application_id: str, folder: Path) -> None:
        self._application_id, self._folder = application_id, folder
        # The thread that closes the application may not be the one that started it.
        self._lock = FileLock(str(folder) + ".lock", thread_local=False)
        self._taking = threading.Lock()

    def take(self, running_here: Container[str]) -> None:
        """Take the lock.

        Args:
            running_here: the ids of the applications that run in this process.

        Raises:
            StreamsError: another one has it, or the folder cannot be written to.
        """
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            with self._taking:
                if self._lock.is_locked:  # by another thread with this very object
                    raise Timeout(self._lock.lock_file)
                self._lock.acquire(timeout=0)
        except Timeout:
            here = self._application_id in running_here or self._lock.is_locked
            running = f"KafkaStreams.running['{self._application_id}']"
            # A cell that is run twice has given the name `streams` to the second one, which does not run.
            advice = (
                f"this process: {running}.close(), and run this again; or go on with it, streams = {running};"
                if here
                else "another process: close it where it runs,"
            )
            raise StreamsError(
                f"An application with the id '{self._application_id}' is running already, in {advice} or choose "
                "another application_id."
            ) from None
        except OSError as failure:
            raise StreamsError(
                f"'{self._application_id}' cannot keep its state in {self._folder.parent}: {failure.strerror}. Make "
                "that folder writable, or choose another one: KafkaStreams(..., state_dir=...)."
            ) from failure

    def release(self) -> None:
        """Let go of the lock."""
        self._lock.release()


class SoleRunner:
    """Takes and keeps the right to run an application, in a thread of its own.

    Args:
        application_id: the application.
        bootstrap_servers: the broker's address.
        folder: where the application keeps its checkpoints.
        lost: called with the reason when another one has taken over while this one was still running.

    >>> runner.claim("trades")  # doctest: +SKIP
    >>> runner.confirm()  # doctest: +SKIP
    """

    def __init__(
        self,
        application_id: str,
        bootstrap_servers: BootstrapServers,
        folder: Path,
        lost: Callable[[StreamsError], None],
    ) -> None:
        self._application_id, self._bootstrap_servers, self._lost = application_id, bootstrap_servers, lost
        self._folder, self._group = folder, f"{application_id}-runner"
        self._thread: threading.Thread | None = None

    def claim(self, topic: str) -> None:
        """Ask to run the application.

        Args:
            topic: any topic; a member of a group has to name one, but is assigned no partition of it.
        """
        self._topic, self._claim = topic, Claim.of_this_process(self._folder)
        self._before: list[Claim] = []
        self._heard: Claim | None = None
        self._refusal: StreamsError | None = None
        self._answered, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamskit: the sole runner", daemon=True)
        self._thread.start()

    def confirm(self) -> None:
        """Wait for the answer.

        Raises:
            StreamsError: another one runs the application, or the group cannot be joined.
        """
        if not self._answered.wait(QUIET_SECONDS) and self._before:
            logger.warning(
                "'%s' was run by %s, which may have died: waiting for a sign of life of it, at most %.0f s.",
                self._application_id, self._before[0], SESSION_SECONDS,
            )  # fmt: skip
        if not self._answered.wait(PATIENCE_SECONDS):
            raise StreamsError(
                f"'{self._application_id}' does not know whether it runs elsewhere: the broker at "
                f"{self._bootstrap_servers} took more than {PATIENCE_SECONDS:.0f} s to let it into the consumer group "
                f"'{self._group}'. Is it busy? Start again when it is not."
            )
        if self._refusal is not None:
            raise self._refusal

    def release(self, seconds: float = 10.0) -> None:
        """Let others run the application; wait at most this many seconds until the group knows."""
        if self._thread is not None:
            self._stopping.set()
            if self._thread is not threading.current_thread():  # it may tell a listener that the application ends
                self._thread.join(seconds)
            self._thread = None

    @property
    def lives(self) -> bool:
        """Whether it keeps its place in the group; also true before it has claimed one and after it has released it."""
        thread = self._thread
        return thread is None or thread.is_alive() or self._stopping.is_set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._bury_the_dead()
                self._take_part()
            except (KafkaError, BrokerError) as failure:
                cause = failure.__cause__ or failure
                if isinstance(cause, AuthorizationError):
                    self._refuse(str(no_right(self._bootstrap_servers, *self._rights)))
                elif isinstance(cause, KafkaError) and not cause.retriable and not self._claim.running_since:
                    self._refuse(
                        f"'{self._application_id}' could not find out whether it runs elsewhere: the broker at "
                        f"{self._bootstrap_servers} does not let it into the consumer group '{self._group}' "
                        f"({reason(cause)}). Allow it groups of that name."
                    )
                logger.debug("The group '%s' could not be joined: %s", self._group, failure)
                self._stopping.wait(RETRY_SECONDS)
            except Exception as failure:
                self._give_up(failure)

    def _give_up(self, failure: Exception) -> None:
        """End because of a failure that is neither the broker's nor the group's: the next try would end the same."""
        why = StreamsError(
            f"'{self._application_id}' cannot know whether it runs elsewhere, and does not run without that: its place "
            f"in the consumer group '{self._group}' was lost to {type(failure).__name__}: {failure}"
        )
        why.__cause__ = failure
        if not self._answered.is_set():
            self._refuse(why)
            return
        self._stopping.set()
        self._lost(why)

    @property
    def _rights(self) -> tuple[Right, ...]:
        """The rights that it needs."""
        return Right("Read", "group", self._group), Right("Describe", "topic", self._topic)

    def _bury_the_dead(self) -> None:
        """Take those out of the group that were processes of this machine and are gone, so that nobody waits for them.

        During a rebalance of the group, the broker shows only the members' client ids. The living members are
        remembered, so that a log line can name those that are waited for.
        """
        with admin_client(self._bootstrap_servers) as admin:
            members = admin.describe_groups([self._group])[self._group]["members"]
            claims = {member["member_id"]: _claim_of(member) for member in members}
            processes = {each["member_id"]: Claim.from_client_id(each["client_id"] or "") for each in members}
            known = ((name, claims[name] or processes[name]) for name in claims)
            dead = [name for name, claim in known if claim is not None and claim.is_dead]
            self._before = [claim for name, claim in claims.items() if claim is not None and name not in dead]
            if dead:
                admin.remove_group_members(self._group, [MemberToRemove(name) for name in dead])

    def _take_part(self) -> None:
        """Be a member until told to stop."""
        assignor = _Assignor(lambda: self._claim, self._hear)
        session_timeout = int(SESSION_SECONDS * 1000)
        with GroupMember(
            self._bootstrap_servers, self._group, assignor, [self._topic], session_timeout, self._claim.client_id
        ) as member:
            while not self._stopping.is_set():
                member.poll()
                self._heed()

    def _hear(self, runner: Claim, generation: int) -> None:
        """Note the leader's answer; the group may rebalance again before it is acted on."""
        if runner.id == self._claim.id:
            since = self._claim.running_since or time.time()
            self._claim = replace(self._claim, running_since=since, member=runner.member, generation=generation)
        self._heard = runner

    def _heed(self) -> None:
        """Act on the leader's last answer."""
        runner, self._heard = self._heard, None
        if runner is None:
            return
        if runner.id == self._claim.id:
            self._answered.set()
        elif not self._answered.is_set():
            is_here = (runner.machine, runner.pid) == (self._claim.machine, self._claim.pid)
            close = f"KafkaStreams.running['{self._application_id}'].close()" if is_here else "Close it there"
            self._refuse(
                f"An application with the id '{self._application_id}' is running already: {runner}. {close}, or choose "
                "another application_id: two with one id would both read all records and write into the same topics."
            )
        else:
            self._stopping.set()
            self._lost(
                StreamsError(
                    f"'{self._application_id}' was out of touch with its broker for more than {SESSION_SECONDS:.0f} s, "
                    f"and another one has taken over meanwhile: {runner}. This one has stopped."
                )
            )

    def _refuse(self, why: str | StreamsError) -> None:
        self._refusal = StreamsError(why) if isinstance(why, str) else why
        self._stopping.set()
        self._answered.set()


class _Assignor(AbstractPartitionAssignor):
    """Represents a process in the group, and decides for all if its member leads; it assigns no partitions."""

    name = "streamskit-runner"
    version = 1

    def __init__(self, claim: Callable[[], Claim], hear: Callable[[Claim, int], None]) -> None:
        self._claim, self._hear = claim, hear

    def metadata(self, topics: Sequence[str]) -> ConsumerProtocolSubscription:
        return ConsumerProtocolSubscription(self.version, sorted(topics), self._claim().to_bytes())

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        said = {each.member_id: Claim.from_bytes(each.metadata.user_data) for each in members}
        claims = {name: claim for name, claim in said.items() if claim is not None}
        answer = chosen(claims).to_bytes()
        return {each.member_id: ConsumerProtocolAssignment(self.version, [], answer) for each in members}

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        if (runner := Claim.from_bytes(assignment.user_data)) is not None:
            self._hear(runner, generation)


def _machine() -> str:
    """Return this machine's name, for people, and an id that no other machine or container of that name has."""
    return f"{socket.gethostname()} {machine_id()}"


def _claim_of(member: dict[str, Any]) -> Claim | None:
    said = member["member_metadata"]
    data = said.get("user_data") if isinstance(said, dict) else getattr(said, "user_data", None)
    return Claim.from_bytes(data.encode() if isinstance(data, str) else data)
