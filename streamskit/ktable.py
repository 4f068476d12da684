"""`KTable`: a table that changes, one update for each change."""

from streamskit.kstream import ColumnFunction, Handle, KStream
from streamskit.topology import ToStream


class KTable(Handle):
    """A changing table: for each key the latest value.

    Mirrors `org.apache.kafka.streams.kstream.KTable`.
    """

    def map_values(self, mapper: ColumnFunction) -> "KTable":
        """Give each row the value `mapper(value)` or `mapper(key, value)`.

        >>> stats.map_values(lambda v: v.sum_price / v["count"])

        Mirrors `KTable#mapValues`.
        """
        return KTable(self._builder, self._mapped(mapper, "KTABLE"))

    def to_stream(self) -> KStream:
        """Return the table's updates as a stream. Mirrors `KTable#toStream`."""
        name = self._builder._name("KTABLE-TOSTREAM")
        return KStream(self._builder, self._after(ToStream, name, self._node.value))
