"""Serdes: how keys and values become the bytes of a Kafka record, and back.

Each serde works in two ways: on one Python value (`serialize`, `deserialize`) and on a whole Spark Column (`to_bytes`,
`from_bytes`). Both give the same bytes, which are those of Kafka's Java serdes.
"""

from streamskit.serdes.catalogue import Serdes
from streamskit.serdes.json_text import JsonSerde
from streamskit.serdes.lists import ListSerde
from streamskit.serdes.numbers import LONG, NumberSerde
from streamskit.serdes.registry import SchemaRegistry
from streamskit.serdes.serde import RegistryError, Serde, SerdeError, require_serde
from streamskit.serdes.simple import BooleanSerde, BytesSerde, StringSerde, UuidSerde, VoidSerde
from streamskit.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde, windowed_type

__all__ = [
    "LONG",
    "BooleanSerde",
    "BytesSerde",
    "JsonSerde",
    "ListSerde",
    "NumberSerde",
    "RegistryError",
    "SchemaRegistry",
    "Serde",
    "SerdeError",
    "Serdes",
    "SessionWindowedSerde",
    "StringSerde",
    "TimeWindowedSerde",
    "UuidSerde",
    "VoidSerde",
    "require_serde",
    "windowed_type",
]
