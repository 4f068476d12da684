"""Schemas that several tests use: a trade in Avro, Protobuf and JSON Schema."""

from functools import cache
from typing import Any

TRADE: dict[str, Any] = {
    "type": "record",
    "name": "Trade",
    "namespace": "shop",
    "fields": [
        {"name": "symbol", "type": "string"},
        {"name": "price", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}

SHOP: dict[str, Any] = {
    "title": "Trade",
    "type": "object",
    "properties": {"symbol": {"type": "string"}, "price": {"type": "number"}},
    "required": ["symbol", "price"],
}


@cache
def trade_class() -> Any:
    """Return the class of a Protobuf message with a symbol and a price."""
    return message_class("trade.proto", "Trade", {"symbol": "STRING", "price": "DOUBLE"})


def message_class(file_name: str, name: str, fields: dict[str, str]) -> Any:
    """Return the class of a Protobuf message of the package shop, made without a compiler.

    Args:
        file_name: of the file that would describe it.
        name: of the message.
        fields: the type of each field by its name, as Protobuf's descriptors spell it.
    """
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

    file = FileDescriptorProto(name=file_name, package="shop", syntax="proto3")
    message = file.message_type.add(name=name)
    for number, (field, kind) in enumerate(fields.items(), start=1):
        spelled = FieldDescriptorProto.Type.Value(f"TYPE_{kind}")
        message.field.add(name=field, number=number, type=spelled, label=FieldDescriptorProto.LABEL_OPTIONAL)
    return class_of(file, f"shop.{name}")


def class_of(file: Any, name: str) -> Any:
    """Return the class of a message of a file; Protobuf's own Timestamp may be imported."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass
    from google.protobuf.timestamp_pb2 import DESCRIPTOR

    timestamp = FileDescriptorProto()
    DESCRIPTOR.CopyToProto(timestamp)
    pool = DescriptorPool()
    pool.Add(timestamp)
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(name))
