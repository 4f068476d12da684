"""The rule BACKWARD: can a new schema read what an old one has written? A simple check for mock registries."""

import base64
import json
from typing import Any


def why_incompatible(kind: str, new: str, old: str) -> str | None:
    """Return why data of the old schema cannot be read with the new one; None if it can.

    Args:
        kind: AVRO (judged by the Apache Avro library), PROTOBUF or JSON (of which a real registry checks more).
        new: the text of the schema that reads.
        old: the text of the schema that wrote.
    """
    found = {"AVRO": _avro, "PROTOBUF": _protobuf, "JSON": _json}[kind](new, old)
    return "; ".join(found) or None


def _avro(new: str, old: str) -> list[str]:
    from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
    from avro.schema import parse

    result = ReaderWriterCompatibilityChecker().get_compatibility(parse(new), parse(old))
    if result.compatibility is SchemaCompatibilityType.compatible:
        return []
    # The library lists kinds, messages and places separately, without saying which belong together.
    kinds = ", ".join(kind.name.replace("_", " ") for kind in result.incompatibilities)
    return [f"{kinds}: {', '.join(sorted(result.messages))} (at {', '.join(sorted(result.locations))})"]


def _protobuf(new: str, old: str) -> list[str]:
    new_messages, old_messages = _messages(new), _messages(old)
    return [
        problem
        for name, message in old_messages.items()
        for problem in (
            [f"message '{name}' is gone"]
            if name not in new_messages
            else _changed_fields(name, new_messages[name], message)
        )
    ]


def _messages(text: str) -> dict[str, Any]:
    """Return all messages of a file by name, including nested ones."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto.FromString(base64.b64decode(text))
    found = {}
    waiting = [(f"{file.package}." if file.package else "", message) for message in file.message_type]
    while waiting:
        prefix, message = waiting.pop()
        found[prefix + message.name] = message
        waiting += [(f"{prefix}{message.name}.", inner) for inner in message.nested_type]
    return found


def _changed_fields(name: str, new: Any, old: Any) -> list[str]:
    fields = {field.number: field for field in new.field}
    return [
        f"field {each.number} of '{name}', '{each.name}', has another type or is no longer repeated or single"
        for each in old.field
        if each.number in fields and _shape(fields[each.number]) != _shape(each)
    ]


def _shape(field: Any) -> tuple[Any, ...]:
    return field.type, field.type_name, field.label == field.LABEL_REPEATED


def _json(new: str, old: str) -> list[str]:
    return _narrower(json.loads(new), json.loads(old), "the schema")


def _narrower(new: Any, old: Any, where: str) -> list[str]:
    """Return where a JSON Schema no longer allows what another did: types, required and closed properties, items."""
    if not isinstance(new, dict) or not isinstance(old, dict):
        return []
    found = [f"{where} was of type {kind}" for kind in sorted(_kinds(old) - _kinds(new))]
    required = set(new.get("required", [])) - set(old.get("required", []))
    found += [f"property '{name}' of {where} is now required" for name in sorted(required)]
    new_properties, old_properties = new.get("properties", {}), old.get("properties", {})
    if new.get("additionalProperties") is False:
        gone = sorted(set(old_properties) - set(new_properties))
        found += [f"property '{name}' of {where} is no longer allowed" for name in gone]
    for name in old_properties.keys() & new_properties.keys():
        found += _narrower(new_properties[name], old_properties[name], f"property '{name}'")
    return found + _narrower(new.get("items"), old.get("items"), f"an item of {where}")


def _kinds(schema: dict[str, Any]) -> set[str]:
    """Return the types that a schema allows; one that names none allows all."""
    said = schema.get("type", ["array", "boolean", "null", "number", "object", "string"])
    kinds = {said} if isinstance(said, str) else set(said)
    return kinds | {"integer"} if "number" in kinds else kinds
