"""`TopicView`: the tail of a topic, live in a notebook."""

from typing import Any

import ipywidgets as widgets

from streamskit.common.durations import Duration
from streamskit.kafka.client import KafkaClient
from streamskit.kafka.tail import Tail
from streamskit.serdes import Serde
from streamskit.views.live import topic_page
from streamskit.views.live.live_view import LiveView, checked_count, search_field
from streamskit.views.live.topic_snapshot import TopicSnapshot, decoder, topic_snapshot

KEPT = 500
"""So many records of each partition are kept to search in."""


class TopicView(LiveView):
    """A live view of the newest records of a topic, by partition, with keys, timestamps and headers.

    It reads only while a page shows it, and skips what it would have to run after.

    Args:
        broker: the broker, from `shared_broker()` or another.
        topic: the topic's name.
        key: how to read keys, a serde; where none is given, text is shown as text and all else as bytes.
        value: how to read values, likewise.
        refresh: how often to look, a duration of at least 50 ms.
        rows: how many records to show at most, 1 to 200.

    Raises:
        TypeError: `broker` is no broker.
        BrokerError: it has no such topic.
        ValueError: another argument is out of range.

    >>> TopicView(broker, "trades", value=Serdes.json("symbol string, price double, size int"))

    Mirrors `kafka-console-consumer.sh` with `print.key`, `print.timestamp`, `print.partition` and `print.headers`.
    """

    KIND, WHAT = "topic", "The topic"

    def __init__(
        self, broker: KafkaClient, topic: str, key: Serde | None = None, value: Serde | None = None,
        refresh: Duration = "500 ms", rows: int = 15,
    ) -> None:  # fmt: skip
        if not isinstance(broker, KafkaClient):
            raise TypeError(
                f"TopicView reads from a broker, and this is a {type(broker).__name__}: write "
                "TopicView(broker, 'a-topic'), with broker = shared_broker()."
            )
        partitions = broker.describe_topic(topic).partitions
        self._topic, self._rows = topic, checked_count(rows, "rows", 200)
        self._key, self._value = decoder(key), decoder(value)
        self._tail = Tail(broker.bootstrap_servers, [topic], KEPT)
        self._search, self._table = search_field(), widgets.HTML()
        self._partition = widgets.Dropdown(
            description="Partition",
            options=[("all", None), *((str(number), number) for number in range(partitions))],
            style={"description_width": "58px"},
            layout=widgets.Layout(width="150px"),
        )
        super().__init__(refresh, [self._partition, self._search], [self._table])
        for control in (self._partition, self._search):
            control.observe(lambda _: self.refresh(), "value")

    def __repr__(self) -> str:
        return f"<TopicView of '{self._topic}'>"

    def take(self, previous: TopicSnapshot | None) -> TopicSnapshot:
        """Look at the topic; while the view is paused, only among the records that it has."""
        if previous is None or not self._pause.value:
            self._tail.look()
        partition = self._partition.value
        ends = {where.partition: end for where, end in self._tail.ends.items()}
        records = self._tail.records(partition)
        key, value, search = self._key, self._value, self._search.value
        return topic_snapshot(self._topic, records, ends, key, value, self._rows, partition, search, previous)

    def header(self, snapshot: TopicSnapshot, state: str, trouble: str = "") -> str:
        """Say how much the topic holds."""
        return topic_page.header(snapshot, state, trouble)

    def show(self, snapshot: TopicSnapshot) -> None:
        """Show the records."""
        self._table.value = self._part(topic_page.table(snapshot, height_of=self._rows))

    def static(self, snapshot: Any) -> str:
        """Return the page that stays in a saved notebook."""
        return topic_page.render_topic(snapshot)

    def rest(self) -> None:
        """Leave the broker alone."""
        self._tail.close()
