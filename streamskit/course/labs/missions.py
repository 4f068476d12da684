"""Live missions: a scene is set on the broker, a learner's function acts there, and what really happened is judged.

Each scene has topics, application ids and folders of its own, so that two checks, in two notebooks or by two learners
on one broker, do not disturb each other.
"""

import atexit
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Any, ClassVar, Self

from streamskit.broker import Broker, shared_broker
from streamskit.common.errors import StreamsKitError
from streamskit.common.names import own_name
from streamskit.common.paths import application_folder
from streamskit.course.labs import catalogue
from streamskit.course.labs.exercise import Verdict, Wrong, endless, getting_ready, mistaken, wrong
from streamskit.course.labs.time_limit import TookTooLong, finished_first, time_limit
from streamskit.runtime.states import State
from streamskit.runtime.streams import KafkaStreams
from streamskit.topology import Topology

LONGEST = 1200.0
"""For how many seconds a mission may act and be judged: what it waits for, one after the other, never takes as long."""

ID_IS_TAKEN = "is running already"
"""The message of a start that is refused because another application has its id."""

A_PROCESSOR = "(Process)"
"""The message of a start that is refused because there is a processor now, whose fields would be kept."""


class Site:
    """Where a mission takes place: a broker, and names and a folder that nobody else uses.

    Args:
        name: of the mission; topics and application ids begin with it.
        props: what the scene puts here; `answer` is the learner's function, where one is judged.

    >>> with Site("bring-back") as site:  # doctest: +SKIP
    ...     site.create_topics(bills=2, shares=2)
    ...     site.broker.produce(site.topic("bills"), [("table-1", {"price": 90})])
    """

    def __init__(self, name: str, **props: Any) -> None:
        self.broker: Broker = shared_broker()
        self.name = f"lab-{name.replace('_', '-')}-{secrets.token_hex(3)}"
        self.folder = Path(mkdtemp(prefix="streamskit-lab-"))
        self.props = props
        self._topics: list[str] = []
        self._closing: list[Callable[[], object]] = []

    def __repr__(self) -> str:
        topics = ", ".join(self._topics) or "none"
        return f"<Site {self.name}: topics {topics}; application {self.application_id}>"

    def __getattr__(self, name: str) -> Any:
        """Return what the scene put here, such as an application that runs already."""
        try:
            return self.__dict__["props"][name]
        except KeyError:
            raise AttributeError(f"This site has no {name!r}.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def application_id(self) -> str:
        """The id of the mission's application."""
        return f"{self.name}-app"

    @property
    def bootstrap_servers(self) -> str:
        """Where the broker is, for `KafkaStreams`."""
        return self.broker.bootstrap_servers

    def topic(self, name: str) -> str:
        """Return the full name of one of the mission's topics."""
        return f"{self.name}-{name}"

    def create_topics(self, **partitions: int) -> None:
        """Make topics of so many partitions; an underscore in a name stands for a hyphen."""
        for name, count in partitions.items():
            self._topics.append(name.replace("_", "-"))
            self.broker.create_topics(self.topic(self._topics[-1]), partitions=count)

    def application(self, topology: Topology, suffix: str = "", /, **settings: Any) -> KafkaStreams:
        """Return an application of this mission, which has not started; its state is in the mission's folder.

        Args:
            topology: what it runs.
            suffix: what is added to the mission's application id, for another application.
            settings: those of `KafkaStreams` that are to differ.
        """
        settings = {"state_dir": self.folder, **settings}
        return KafkaStreams(topology, self.application_id + suffix, self.bootstrap_servers, **settings)

    def on_close(self, stop: Callable[[], object]) -> None:
        """Call this when the site is closed: it stops something that the scene has started."""
        self._closing.append(stop)

    def running(self) -> list[KafkaStreams]:
        """Return the applications of this mission that run in this process, whatever their ids are."""
        return [streams for streams in list(KafkaStreams.running.values()) if self._has(streams)]

    def _has(self, streams: KafkaStreams) -> bool:
        """Say whether an application has an id of this mission, or reads its topics."""
        read = (topic for source in streams.topology.sources for topic in source.topic_names)
        return any(map(self._is_ours, (streams.application_id, *read)))

    def _is_ours(self, name: str) -> bool:
        """Say whether a topic or an application id is one of this mission."""
        return own_name(name).startswith(own_name(self.name))

    def settle(self) -> None:
        """Let what runs process all that is there, and close it: what it has done can then be read.

        Raises:
            StreamsKitError: it has failed, or does not come to an end in a minute.
        """
        for streams in self.running():
            try:
                streams.await_processed("60 seconds")
            finally:
                streams.close()

    def close(self) -> None:
        """Stop what runs, and leave nothing behind on the broker or on the disk, even if a part of that fails."""
        with finished_first(), ExitStack() as left:  # runs in reverse order
            left.callback(self._delete_folders)
            left.callback(self._delete_topics)
            left.callback(self._close_running)
            while self._closing:
                left.callback(self._closing.pop(0))

    def _close_running(self) -> None:
        with ExitStack() as left:
            for streams in self.running():
                left.callback(self._end, streams)

    def _end(self, streams: KafkaStreams) -> None:
        """Close an application; one with an id of its own forgets this mission, as its next one has other topics."""
        streams.close()
        if not self._is_ours(streams.application_id):
            streams.clean_up()

    def _delete_topics(self) -> None:
        left = [topic for topic in self.broker.topics() if topic.startswith(self.name)]
        if left:
            self.broker.delete_topics(*left, missing_ok=True)

    def _delete_folders(self) -> None:
        for folder in (self.folder, application_folder(self.application_id)):
            shutil.rmtree(folder, ignore_errors=True)


def is_up(streams: KafkaStreams) -> bool:
    """Say whether an application was started, and has neither been closed nor failed."""
    return streams.state in (State.REBALANCING, State.RUNNING)


@dataclass(frozen=True)
class Lives:
    """Examines a live mission: the scene is set, the learner's function is called with the site, and then it is judged.

    Args:
        name: of the exercise.
        scene: makes topics, fills them, and lets an application run if there is to be one already.
        judge: says what came of it, of the site and what the function returned.
        wrong: functions that act wrongly, by the mistake that they make.
        errors: a part of an error's message, and the mistake that it tells of.
        returns_application: whether the function has to return the application that it leaves running.
        returns_topology: whether it has to return a topology.
    """

    is_live: ClassVar[bool] = True
    name: str
    scene: Callable[[Site], None]
    judge: Callable[[Site, Any], Verdict]
    wrong: Wrong = field(default_factory=dict, kw_only=True)
    errors: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    returns_application: bool = field(default=False, kw_only=True)
    returns_topology: bool = field(default=False, kw_only=True)

    def __call__(self, answer: Any) -> Verdict:
        if not callable(answer):
            return wrong(f"It has to be a function, but is {answer!r}.")
        with Site(self.name, answer=answer) as site:
            with getting_ready():
                self.scene(site)
            try:
                with time_limit(LONGEST):
                    return self._acted(site, answer)
            except StreamsKitError as error:
                return self._failed(error)
            except TookTooLong as interruption:
                return endless(LONGEST, interruption, self.name)

    def _acted(self, site: Site, answer: Any) -> Verdict:
        returned = answer(site)
        if self.returns_application and not isinstance(returned, KafkaStreams):
            return wrong(f"It has to return the KafkaStreams that runs now; it returned {returned!r}.")
        if self.returns_topology and not isinstance(returned, Topology):
            return wrong(f"It has to return the topology that builder.build() gives; it returned {returned!r}.")
        return self.judge(site, returned)

    def _failed(self, error: StreamsKitError) -> Verdict:
        known = next((mistake for part, mistake in self.errors.items() if part in str(error)), "")
        verdict = mistaken(known) if known else Verdict(False, f"It ended with an error: {error}")
        return Verdict(False, verdict.says, verdict.misconception, cause=error)


_open: dict[str, Site] = {}


def scene(name: str) -> Site:
    """Set the scene of a live mission, as its check does, so that you can look around and try things out.

    A scene that was set before for this mission is taken down first.

    Args:
        name: of the exercise.

    Raises:
        StreamsKitError: there is no such exercise, or it is no live mission.

    >>> site = scene("bring_back")  # doctest: +SKIP
    >>> site.broker.consume(site.topic("bills"))  # doctest: +SKIP
    """
    examine = catalogue.exercise(name).examine
    if not isinstance(examine, Lives):
        raise StreamsKitError(f"{name} is no live mission: it has no scene to set. check({name!r}) examines it.")
    if name in _open:
        _open.pop(name).close()
    site = Site(name)
    try:
        examine.scene(site)
    except BaseException:  # nobody could look around in half of it
        site.close()
        raise
    _open[name] = site
    atexit.unregister(_take_down)  # what was registered last is called first: before Spark's Java ends
    atexit.register(_take_down)
    return site


def _take_down() -> None:
    """Leave no scene behind when the notebook's kernel ends."""
    while _open:
        with suppress(StreamsKitError):
            _open.popitem()[1].close()
