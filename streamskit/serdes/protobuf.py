"""Protobuf: fields by number; bytes before the payload say which message of the schema's file it is."""

import base64
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from pyspark.sql import types as T

from streamskit.serdes.protobuf_types import fill, spark_type, to_row
from streamskit.serdes.registered import RegisteredSerde, as_registry, subject_name
from streamskit.serdes.registry import SchemaRegistry

_classes: dict[tuple[bytes, str], Any] = {}
"""The classes of messages, by the files that describe them and by name."""


@dataclass(frozen=True)
class ProtobufSerde(RegisteredSerde):
    """Messages of a class that Protobuf generated, or dicts. Mirrors Confluent's `KafkaProtobufSerde`.

    `files` holds the message's file and those it imports, so that the class can be recreated in Spark's workers.
    """

    message: str
    files: bytes
    registry: SchemaRegistry
    subject: str
    schema_id: int
    kind: ClassVar[str] = "PROTOBUF"

    @property
    def name(self) -> str:
        return self.message

    @property
    def message_class(self) -> Any:
        """The class of the messages."""
        return _message_class(self.files, self.message)

    @property
    def data_type(self) -> T.DataType:
        return spark_type(self.message_class.DESCRIPTOR)

    def encode(self, value: Any) -> bytes:
        message = value
        if isinstance(value, dict):
            message = fill(self.message_class(), value)
        elif getattr(getattr(value, "DESCRIPTOR", None), "full_name", None) != self.message:
            raise ValueError(
                f"it is a {type(value).__name__}, neither a message of the class {self.message} nor a dict"
            )
        return write_indexes(_path(self.message_class.DESCRIPTOR)) + message.SerializeToString()

    def decode(self, payload: bytes, writer: str) -> Any:
        indexes, start = read_indexes(payload)
        written = _named(writer, tuple(indexes))
        if written != self.message:
            raise ValueError(f"it is a message {written}")
        return self.message_class.FromString(payload[start:])

    def deserialize_row(self, data: bytes | None) -> Any:
        message = self.deserialize(data)
        return None if message is None else to_row(message)


def protobuf_serde(
    message_class: Any, registry: SchemaRegistry | str, topic: str | None, subject: str | None
) -> ProtobufSerde:
    """Register the file of a Protobuf message and return its serde; see `Serdes.protobuf`.

    Raises:
        ValueError: the file of the message imports another one.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

    descriptor = message_class.DESCRIPTOR
    spark_type(descriptor)
    file = FileDescriptorProto()
    descriptor.file.CopyToProto(file)
    imported = [each.name for each in descriptor.file.dependencies if not each.name.startswith("google/protobuf/")]
    if imported:
        raise ValueError(
            f"{descriptor.full_name} imports {', '.join(imported)}. A schema is registered as one file: put the "
            "messages into it. Only google/protobuf/... may be imported."
        )
    files = FileDescriptorSet(file=[*_imports(descriptor.file), file]).SerializeToString(deterministic=True)
    text = base64.b64encode(file.SerializeToString(deterministic=True)).decode()
    registry = as_registry(registry)
    name = subject_name(topic, subject, descriptor.full_name)
    _classes[files, descriptor.full_name] = message_class
    return ProtobufSerde(descriptor.full_name, files, registry, name, registry.register(name, text, "PROTOBUF"))


def write_indexes(path: list[int]) -> bytes:
    """Return the path to a message in its file: how many steps, then each, as zigzag varints; [0] is one byte 00."""
    return b"\x00" if path == [0] else b"".join(map(_varint, [len(path), *path]))


def read_indexes(payload: bytes) -> tuple[list[int], int]:
    """Return the path to the message in its file, and where the message begins."""
    count, at = _read_varint(payload, 0)
    if count == 0:
        return [0], at
    path = []
    for _ in range(count):
        step, at = _read_varint(payload, at)
        path.append(step)
    return path, at


def _varint(number: int) -> bytes:
    rest, written = number << 1, bytearray()  # zigzag: the lowest bit is the sign, and these numbers have none
    while rest > 0x7F:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*written, rest])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data):
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise ValueError("the bytes end before they say which message they are")


def _path(descriptor: Any) -> list[int]:
    """Return the path to a message: its index in the enclosing message or file, after the enclosing message's path."""
    around = descriptor.containing_type
    beside = around.nested_types if around else list(descriptor.file.message_types_by_name.values())
    return [*(_path(around) if around else []), [each.name for each in beside].index(descriptor.name)]


@lru_cache(maxsize=1000)
def _named(text: str, path: tuple[int, ...]) -> str:
    """Return the name of the message at a place in a schema's file."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto.FromString(base64.b64decode(text))
    messages, names = file.message_type, [file.package] if file.package else []
    for step in path:
        if not 0 <= step < len(messages):
            raise ValueError(f"its message index is {list(path)}, and the schema has no such message")
        names.append(messages[step].name)
        messages = messages[step].nested_type
    return ".".join(names)


def _imports(file: Any) -> list[Any]:
    """Return the files that a file imports, each after those that it imports itself."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    found = []
    for each in file.dependencies:
        found += [*_imports(each), FileDescriptorProto()]
        each.CopyToProto(found[-1])
    return list({each.name: each for each in found}.values())


def _message_class(files: bytes, name: str) -> Any:
    """Return the class that the serde was made with, or in another process one that is recreated."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    if (files, name) not in _classes:
        pool = DescriptorPool()
        for file in FileDescriptorSet.FromString(files).file:
            pool.Add(file)
        _classes[files, name] = GetMessageClass(pool.FindMessageTypeByName(name))
    return _classes[files, name]
