"""Serdes whose schema is in a registry: each record begins with the number of the schema that wrote it."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from streamskit.serdes.registry import SchemaRegistry
from streamskit.serdes.serde import RegistryError, Serde

MAGIC = b"\x00"
"""The first byte of Confluent's wire format; the schema's id follows in 4 bytes, then the format's own bytes."""

HEAD = 5
"""How many bytes come before the format's own."""


class RegisteredSerde(Serde):
    """What Avro, Protobuf and JSON Schema have in common: five bytes before the payload, and a registry."""

    kind: ClassVar[str]
    registry: SchemaRegistry
    subject: str
    schema_id: int

    @abstractmethod
    def encode(self, value: Any) -> bytes:
        """Return a value's bytes without those of the schema id."""

    @abstractmethod
    def decode(self, payload: bytes, writer: str) -> Any:
        """Return the value in bytes that were written with the schema `writer` (its text)."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the schema calls its values."""

    def __str__(self) -> str:
        return f"Serdes.{self.kind.lower()}({self.name!r})"

    def serialize(self, value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            payload = self.encode(value)
        except Exception as wrong:
            raise self.cannot_write(value, wrong) from wrong
        return MAGIC + self.schema_id.to_bytes(HEAD - 1, "big") + payload

    def deserialize(self, data: bytes | None) -> Any:
        return self._read(data, self.decode)

    def _read(self, data: bytes | None, decode: Callable[[bytes, str], Any]) -> Any:
        if data is None:
            return None
        if len(data) < HEAD or data[:1] != MAGIC:
            raise self.cannot_read(data, "it begins with a byte 00 and a schema id of 4 bytes, and this does not")
        try:
            writer = self.registry.schema(int.from_bytes(data[1:HEAD], "big"), self.kind)
            return decode(data[HEAD:], writer)
        except RegistryError:
            raise
        except Exception as wrong:
            raise self.cannot_read(data, wrong) from wrong


def subject_name(topic: str | None, subject: str | None, name: str) -> str:
    """Return the subject of a schema: the one given, `<topic>-value`, or the schema's own name.

    Raises:
        ValueError: both a topic and a subject are given.
    """
    if topic is not None and subject is not None:
        raise ValueError(
            f"Give topic={topic!r} or subject={subject!r}, not both: the topic makes '{topic}-value' of it."
        )
    return subject or (f"{topic}-value" if topic else name)


def as_registry(registry: SchemaRegistry | str) -> SchemaRegistry:
    """Return the registry, made from its address if that is what was given."""
    return SchemaRegistry(registry) if isinstance(registry, str) else registry
