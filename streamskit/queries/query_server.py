"""An instance with its REST layer: it shares the stores of an application with others, and answers queries."""

import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from streamskit.api.streams_config import StreamsConfig
from streamskit.kafka.topic_reader import Offsets
from streamskit.kafka.topics import TopicIdentity
from streamskit.queries.group.catalogue import Catalogue
from streamskit.queries.hosted_view import HostedView
from streamskit.queries.instance import Instance
from streamskit.queries.metadata import HostInfo
from streamskit.queries.rest_service import RestService


class QueryServer:
    """An `Instance` with its REST layer, within a `KafkaStreams` or in a process of its own.

    Args:
        catalogue: the application's stores.
        config: where and how to answer.
        state_dir: returns the folder for stores on the disk, given its address, or None to keep them in memory;
            `stores` in the application's folder when not given.
        keeps: says, for a topic and the key and value of a record, whether the stores take it.
        service: the application's own routes, if it has any.
        before: one that has not started and is not to start any more: its address and its dashboard are taken over.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        config: StreamsConfig,
        state_dir: Callable[[HostInfo], Path | None] | None = None,
        keeps: Callable[[str, bytes | None, bytes | None], bool] = lambda topic, key, value: True,
        service: RestService | None = None,
        before: "QueryServer | None" = None,
    ) -> None:
        from streamskit.queries.rest import server as rest

        server = HostInfo.of(config.application_server or "")
        listen = HostInfo.of(config.listen) if config.listen else server
        bound = rest.bind(listen.host, listen.port) if before is None else before.hand_over()
        self.here = HostInfo(server.host, server.port or bound.getsockname()[1])
        self.instance = Instance(
            catalogue,
            config.connection,
            self.here,
            state_dir=config.folder / "stores" if state_dir is None else state_dir(self.here),
            num_standby_replicas=config.num_standby_replicas,
            session_timeout=config.session_timeout,
            keeps=keeps,
        )
        self.rest = rest.Server(self.instance, bound, config.token_text, service)
        if before is not None:
            self.rest.dashboard = before.rest.dashboard

    def start(self) -> None:
        """Answer, and join the other instances.

        Raises:
            StreamsError: the broker cannot be reached, or the folder of the stores cannot be used.
        """
        self.rest.start()
        self.instance.start()

    def stop(self, leave_group: bool = True) -> None:
        """Leave the group, or let the others notice, and stop answering."""
        try:
            self.instance.stop(leave_group)
        finally:
            self.rest.stop()

    def let_go(self) -> None:
        """Close the socket; it is not to start any more."""
        self.rest.stop()

    def hand_over(self) -> socket.socket:
        """Return the socket, for another one to answer there; this one is not to start any more."""
        return self.rest.hand_over()

    def wait_for(self, offsets: Offsets, deadline: float, check: Callable[[], None] = lambda: None) -> None:
        """Wait until the partitions that are here hold all updates before the given offsets, as `Replica` does."""
        self.instance.wait_for(offsets, deadline, check)

    def widen(self, counts: Mapping[str, int]) -> None:
        """Read partitions that were added to the topics of global tables, as `Replica` does."""
        self.instance.widen(counts)

    def look_at_topics(self, found: Mapping[str, TopicIdentity]) -> None:
        """React to the changelogs as they are now: for an instance whose application runs in another process."""
        self.widen({topic: identity.partitions for topic, identity in found.items()})
        self.instance.look_at_topics(found)

    def say_stopped(self, why: str) -> None:
        """Have the stores say why no more updates come, unless they already do."""
        self.instance.say_stopped(why)

    @property
    def lives(self) -> bool:
        """Whether the changelogs are read; also before the start and after the end."""
        return self.instance.lives

    def store(self, name: str) -> HostedView:
        """Return the part of a store that is here.

        The last known value is an answer in this process, also while the broker is away, as in Kafka Streams.
        """
        return HostedView(self.instance, name)
