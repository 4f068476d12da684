"""`Serdes`: all serdes, by name."""

from typing import Any

from pyspark.sql import types as T

from streamskit.common.durations import Duration, to_milliseconds
from streamskit.serdes import ddl
from streamskit.serdes.json_text import JsonSerde, require_what_json_holds
from streamskit.serdes.lists import ListSerde
from streamskit.serdes.numbers import DOUBLE, FLOAT, INTEGER, LONG, SHORT
from streamskit.serdes.registry import SchemaRegistry
from streamskit.serdes.serde import Serde, require_serde
from streamskit.serdes.simple import BooleanSerde, BytesSerde, StringSerde, UuidSerde, VoidSerde
from streamskit.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde


class Serdes:
    """All serdes. Mirrors `org.apache.kafka.common.serialization.Serdes`.

    >>> Serdes.long().serialize(258)
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x02'
    """

    @staticmethod
    def for_type(data_type: T.DataType) -> Serde:
        """Return the serde for a Spark type when none is named: numbers and text as in Kafka, the rest as JSON."""
        simple: dict[type[T.DataType], Serde] = {
            T.StringType: StringSerde(),
            T.LongType: LONG,
            T.IntegerType: INTEGER,
            T.ShortType: SHORT,
            T.DoubleType: DOUBLE,
            T.FloatType: FLOAT,
            T.BooleanType: BooleanSerde(),
            T.BinaryType: BytesSerde(),
        }
        return simple.get(type(data_type)) or JsonSerde(ddl.written(data_type))

    @staticmethod
    def avro(
        schema: str | dict[str, Any],
        registry: SchemaRegistry | str,
        *,
        topic: str | None = None,
        subject: str | None = None,
        record_class: type | None = None,
    ) -> Serde:
        """Avro with its schema in a registry; the schema is registered at once.

        Args:
            schema: as JSON text or as a dict. Records are read with this schema, whichever wrote them.
            registry: a `SchemaRegistry` or its address, `mock://course` for one in this process.
            topic: the topic whose values these are; the subject is then `<topic>-value`.
            subject: the subject of the schema, if not given by the topic; the record's name if neither is given.
            record_class: a class with the record's fields (a dataclass, a generated class). In Python, records
                are objects of it, like Java's specific records; without it they are dicts.

        Raises:
            RegistryError: the registry refuses the schema, or does not answer.
            ValueError: this is no Avro schema, or Spark has no type for it.

        >>> trade = '{"type": "record", "name": "Trade", "fields": [{"name": "price", "type": "double"}]}'
        >>> Serdes.avro(trade, "mock://course", topic="trades").serialize({"price": 61.5})
        b'\\x00\\x00\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\xc0N@'

        Mirrors `GenericAvroSerde` and `SpecificAvroSerde`.
        """
        from streamskit.serdes.avro import avro_serde

        return avro_serde(schema, registry, topic, subject, record_class)

    @staticmethod
    def protobuf(
        message_class: Any, registry: SchemaRegistry | str, *, topic: str | None = None, subject: str | None = None
    ) -> Serde:
        """Protobuf messages with their schema in a registry; the schema is registered at once.

        Args:
            message_class: a class that Protobuf generated, by its compiler or at run time.
            registry: a `SchemaRegistry` or its address, `mock://course` for one in this process.
            topic: the topic whose values these are; the subject is then `<topic>-value`.
            subject: the subject of the schema, if not given by the topic; the message's name if neither is given.

        Raises:
            RegistryError: the registry refuses the schema, or does not answer.
            ValueError: Spark has no type for the message.

        Mirrors `KafkaProtobufSerde`.
        """
        from streamskit.serdes.protobuf import protobuf_serde

        return protobuf_serde(message_class, registry, topic, subject)

    @staticmethod
    def json_schema(
        schema: str | dict[str, Any],
        registry: SchemaRegistry | str,
        *,
        topic: str | None = None,
        subject: str | None = None,
    ) -> Serde:
        """JSON text that is validated against a JSON Schema in a registry; the schema is registered at once.

        Args:
            schema: as JSON text or as a dict.
            registry: a `SchemaRegistry` or its address, `mock://course` for one in this process.
            topic: the topic whose values these are; the subject is then `<topic>-value`.
            subject: the subject of the schema, if not given by the topic; the schema's title if neither is given.

        Raises:
            RegistryError: the registry refuses the schema, or does not answer.
            ValueError: this is no JSON Schema, or Spark has no type for it.

        Mirrors `KafkaJsonSchemaSerde`.
        """
        from streamskit.serdes.json_schema import json_schema_serde

        return json_schema_serde(schema, registry, topic, subject)

    @staticmethod
    def json(schema: str) -> Serde:
        """JSON text with the fields of a Spark schema, like `Serdes.json("symbol string, price double")`.

        Columns write a time with milliseconds, and one that has microseconds with these: as keys, times that differ
        only in microseconds are different keys. A field of type `decimal(precision, scale)` is a `decimal.Decimal` in
        Python, with all its digits; ints, and floats with no more digits than it has, can be written, too.

        Args:
            schema: a Spark type as text, or fields with their types. The keys of a map have to be strings.

        Raises:
            ValueError: the text names no type, a map has other keys, or two fields have one name.

        >>> Serdes.json("price decimal(38,2)").deserialize(b'{"price":12345678901234567890.12}')
        {'price': Decimal('12345678901234567890.12')}
        """
        require_what_json_holds(schema)
        return JsonSerde(schema)

    @staticmethod
    def time_windowed(inner: Serde, window_size: Duration) -> Serde:
        """A windowed key: the inner key's bytes and the window's start; `window_size` in milliseconds, or "5 seconds".

        Raises:
            TopologyError: the first is no serde.
            ValueError: the second is no duration, or negative.

        >>> str(Serdes.time_windowed(Serdes.string(), "5 seconds"))
        'Serdes.time_windowed(Serdes.string(), 5000)'
        """
        require_serde(inner, "Serdes.time_windowed(): the serde of the keys")
        return TimeWindowedSerde(inner, to_milliseconds(window_size, "window_size"))

    @staticmethod
    def session_windowed(inner: Serde) -> Serde:
        """A key and its session: the inner key's bytes, the session's end and its start.

        Raises:
            TopologyError: what is given is no serde.
        """
        require_serde(inner, "Serdes.session_windowed(): the serde of the keys")
        return SessionWindowedSerde(inner)

    @staticmethod
    def string() -> Serde:
        """Text as UTF-8."""
        return StringSerde()

    @staticmethod
    def long() -> Serde:
        """A whole number of 64 bits (Spark's bigint), 8 bytes."""
        return LONG

    @staticmethod
    def integer() -> Serde:
        """A whole number of 32 bits (Spark's int), 4 bytes."""
        return INTEGER

    @staticmethod
    def short() -> Serde:
        """A whole number of 16 bits (Spark's smallint), 2 bytes."""
        return SHORT

    @staticmethod
    def double() -> Serde:
        """A floating-point number of 64 bits, 8 bytes."""
        return DOUBLE

    @staticmethod
    def boolean() -> Serde:
        """True or false, 1 byte."""
        return BooleanSerde()

    @staticmethod
    def byte_array() -> Serde:
        """Bytes as they are; Java's `byte[]`."""
        return BytesSerde()

    @staticmethod
    def byte_buffer() -> Serde:
        """Bytes as they are; Java's `ByteBuffer`."""
        return BytesSerde("byte_buffer")

    @staticmethod
    def uuid() -> Serde:
        """A UUID as its 36 characters; a `uuid.UUID` in Python, text in Spark."""
        return UuidSerde()

    @staticmethod
    def void() -> Serde:
        """Nothing but null, for keys or values that are always absent."""
        return VoidSerde()

    # The names of Python's own types come last: after them, `float`, `bytes` and `list` would mean these methods.

    @staticmethod
    def float() -> Serde:
        """A floating-point number of 32 bits, 4 bytes."""
        return FLOAT

    @staticmethod
    def bytes() -> Serde:
        """Bytes as they are; Java's `Bytes`."""
        return BytesSerde("bytes")

    @staticmethod
    def list(inner: Serde) -> Serde:
        """A list (Spark's array) of what another serde writes, like `Serdes.list(Serdes.long())`."""
        require_serde(inner, "Serdes.list(): the serde of the entries")
        return ListSerde(inner)
