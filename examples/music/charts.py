"""A chart: the five songs that are played most. How a song gets in and out of one, and a chart as bytes."""

import struct
from typing import Any

from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from streamskit import Serde

MOST = 5
HEAD = struct.Struct(">qH")

Chart = list[dict[str, Any]]
"""Songs with their ids and plays, the one that is played most first."""


def empty() -> Chart:
    """Return a chart without songs."""
    return []


def put_in(name: str, song: dict[str, Any], chart: Chart) -> Chart:
    """Return a chart with a song in its place, if it belongs there; equal numbers of plays go by the id."""
    ranked = sorted([*taken_out(name, song, chart), song], key=lambda one: (-one["plays"], one["id"]))
    return ranked[:MOST]


def taken_out(name: str, song: dict[str, Any], chart: Chart) -> Chart:
    """Return a chart without a song: its number of plays has changed."""
    return [other for other in chart if other["id"] != song["id"]]


class ChartSerde(Serde):
    """A chart as bytes: for each song eight bytes of plays, two with the length of the id, and the id.

    >>> ChartSerde().serialize([{"id": "song-07", "plays": 3}])
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x03\\x00\\x07song-07'
    """

    @property
    def data_type(self) -> DataType:
        """The Spark type of a chart."""
        song = StructType([StructField("id", StringType()), StructField("plays", LongType())])
        return ArrayType(song)

    def serialize(self, value: Chart | None) -> bytes | None:
        """Return the bytes of a chart."""
        if value is None:
            return None
        return b"".join(_song(each["id"].encode(), each["plays"]) for each in value)

    def deserialize(self, data: bytes | None) -> Chart | None:
        """Return the chart in some bytes.

        Raises:
            ValueError: they end within a song.
        """
        if data is None:
            return None
        chart, at = empty(), 0
        while at < len(data):
            if len(data) < at + HEAD.size:
                raise ValueError(f"the bytes end within song {len(chart) + 1} of the chart")
            plays, length = HEAD.unpack_from(data, at)
            start, at = at + HEAD.size, at + HEAD.size + length
            if len(data) < at:
                raise ValueError(f"the bytes end within the id of song {len(chart) + 1} of the chart")
            chart.append({"id": data[start:at].decode(), "plays": plays})
        return chart


def _song(name: bytes, plays: int) -> bytes:
    return HEAD.pack(plays, len(name)) + name
