"""Keys that carry a window: the key's own bytes, then the window's times."""

import struct
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.api.windows import FOREVER, Windowed
from streamskit.serdes.numbers import LONG
from streamskit.serdes.serde import Serde, SerdeError


class _WindowedSerde(Serde):
    """An inner key followed by times of a known width; what the two serdes have in common."""

    inner: Serde
    width: ClassVar[int]
    rule: ClassVar[str]

    @abstractmethod
    def pack(self, window: Windowed) -> bytes:
        """Return the bytes of a window's times."""

    @abstractmethod
    def unpack(self, times: bytes) -> tuple[int, int]:
        """Return start and end from the bytes of the times."""

    @abstractmethod
    def pack_column(self, window: Column) -> Column:
        """Return the bytes of the times of a Column of windows."""

    @abstractmethod
    def unpack_column(self, times: Column) -> tuple[Column, Column]:
        """Return Columns of start and end."""

    @property
    def runs_in_python(self) -> bool:
        return self.inner.runs_in_python

    @property
    def is_canonical(self) -> bool:
        return self.inner.is_canonical

    @property
    def data_type(self) -> T.DataType:
        return windowed_type(self.inner.data_type)

    def serialize(self, value: Windowed | None) -> bytes | None:
        if value is None:
            return None
        try:
            inner, times = value.key, self.pack(value)
        except (AttributeError, struct.error):
            raise self.cannot_write(value, "a key with a window is a Windowed(key, start, end)") from None
        key = self.inner.serialize(inner)
        if key is None:
            raise SerdeError(self._keyless)
        return key + times

    def deserialize(self, data: bytes | None) -> Windowed | None:
        if data is None:
            return None
        if len(data) < self.width:
            raise self.cannot_read(data, self.rule)
        key, times = data[: -self.width], data[-self.width :]
        return Windowed(self.inner.deserialize(key), *self.unpack(times))

    def to_bytes(self, value: Column) -> Column:
        keyless = value.isNotNull() & value["key"].isNull()
        wrong = F.raise_error(F.lit(self._keyless)).cast("binary")
        return F.concat(F.when(keyless, wrong).otherwise(self.inner.to_bytes(value["key"])), self.pack_column(value))

    def from_bytes(self, data: Column) -> Column:
        wrong = F.raise_error(self.refusal(data, self.rule)).cast(self.data_type)
        window = self._window(self.inner.from_bytes(self._key(data)), data)
        return F.when(F.octet_length(data) >= self.width, window).when(data.isNotNull(), wrong)

    def try_to_bytes(self, value: Column) -> Column:
        key = self.inner.try_to_bytes(value["key"])
        keyless = F.when(value.isNotNull() & value["key"].isNull(), F.lit(self._keyless))
        error = F.coalesce(keyless, key["error"])
        written = F.when(error.isNull(), F.concat(key["value"], self.pack_column(value)))
        return F.struct(written.alias("value"), error.alias("error"))

    def try_from_bytes(self, data: Column) -> Column:
        key = self.inner.try_from_bytes(self._key(data))
        short = F.octet_length(data) < self.width
        error = F.when(short, self.refusal(data, self.rule)).otherwise(key["error"])
        window = F.when(data.isNotNull() & error.isNull(), self._window(key["value"], data))
        return F.struct(window.alias("value"), error.alias("error"))

    @property
    def _keyless(self) -> str:
        return f"{self} cannot write a window without a key."

    def _key(self, data: Column) -> Column:
        return F.substring(data, F.lit(1), F.octet_length(data) - self.width)

    def _window(self, key: Column, data: Column) -> Column:
        start, end = self.unpack_column(F.substring(data, F.octet_length(data) - (self.width - 1), F.lit(self.width)))
        return F.struct(key.alias("key"), start.alias("start"), end.alias("end"))


@dataclass(frozen=True)
class TimeWindowedSerde(_WindowedSerde):
    """A key with its window: the key's bytes, then the window's start as 8 bytes; the end follows from the size.

    Mirrors `org.apache.kafka.streams.kstream.TimeWindowedSerializer` and its deserializer.
    """

    inner: Serde
    window_size: int
    width: ClassVar[int] = 8
    rule: ClassVar[str] = "a windowed key ends in 8 bytes of time"

    def __str__(self) -> str:
        return f"Serdes.time_windowed({self.inner}, {self.window_size})"

    def pack(self, window: Windowed) -> bytes:
        return struct.pack(">q", window.start)

    def unpack(self, times: bytes) -> tuple[int, int]:
        start = int.from_bytes(times, "big", signed=True)
        return start, min(start, self._latest_start) + self.window_size

    def pack_column(self, window: Column) -> Column:
        return LONG.to_bytes(window["start"])

    def unpack_column(self, times: Column) -> tuple[Column, Column]:
        start = LONG.from_bytes(times)
        return start, F.least(start, F.lit(self._latest_start)) + self.window_size

    @property
    def _latest_start(self) -> int:
        # No window ends after the last of all times: with the longest size, as of unlimited windows, all end there.
        return FOREVER - self.window_size


@dataclass(frozen=True)
class SessionWindowedSerde(_WindowedSerde):
    """A key with its session: the key's bytes, then the session's end and start as 8 bytes each.

    Mirrors `org.apache.kafka.streams.kstream.SessionWindowedSerializer` and its deserializer.
    """

    inner: Serde
    width: ClassVar[int] = 16
    rule: ClassVar[str] = "a session's key ends in 16 bytes of time"

    def __str__(self) -> str:
        return f"Serdes.session_windowed({self.inner})"

    def pack(self, window: Windowed) -> bytes:
        return struct.pack(">qq", window.end, window.start)

    def unpack(self, times: bytes) -> tuple[int, int]:
        end, start = struct.unpack(">qq", times)
        return start, end

    def pack_column(self, window: Column) -> Column:
        return F.concat(LONG.to_bytes(window["end"]), LONG.to_bytes(window["start"]))

    def unpack_column(self, times: Column) -> tuple[Column, Column]:
        return LONG.from_bytes(F.substring(times, 9, 8)), LONG.from_bytes(F.substring(times, 1, 8))


def windowed_type(key: T.DataType) -> T.StructType:
    """Return the Spark type of a windowed key: key, start and end (milliseconds)."""
    return T.StructType(
        [T.StructField("key", key), T.StructField("start", T.LongType()), T.StructField("end", T.LongType())]
    )
