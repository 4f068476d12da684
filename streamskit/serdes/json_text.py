"""JSON text with the fields of a Spark schema."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from pyspark import TaskContext
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.environment.session import spark_session
from streamskit.jvm.functions import attempt, read_json, write_json
from streamskit.serdes.serde import Serde


@dataclass(frozen=True)
class JsonSerde(Serde):
    """JSON text of a Spark schema; in Python a dict (or a list, where the schema is an array).

    A Column has exactly the fields of the schema, null where the text has none, and fails where a field is of another
    type. `deserialize` gives the text's own fields and types, whatever the schema says.
    """

    schema: str

    def __str__(self) -> str:
        return f"Serdes.json({self.schema!r})"

    @property
    def data_type(self) -> T.DataType:
        return _parsed(self.schema)

    @property
    def runs_in_python(self) -> bool:
        return False

    def serialize(self, value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        except (TypeError, ValueError) as wrong:
            raise self.cannot_write(value, wrong) from None

    def deserialize(self, data: bytes | None) -> Any:
        if data is None:
            return None
        try:
            return json.loads(data.decode())
        except ValueError as wrong:
            raise self.cannot_read(data, f"it is not JSON: {wrong}") from None

    def to_bytes(self, value: Column) -> Column:
        if isinstance(self.data_type, T.StructType | T.ArrayType | T.MapType):
            return write_json(value)
        # to_json needs something with members: write a list of one and remove its brackets.
        text = F.to_json(F.array(value), {"ignoreNullFields": "false"})
        return F.when(value.isNotNull(), text.substr(F.lit(2), F.length(text) - 2)).cast("binary")

    def from_bytes(self, data: Column) -> Column:
        return read_json(data, self.data_type, str(self))

    def try_from_bytes(self, data: Column) -> Column:
        tried = attempt(self.from_bytes(data))
        error = F.when(tried["error"].isNotNull(), self.refusal(data, "it is not JSON text of this schema"))
        return F.struct(tried["value"].alias("value"), error.alias("error"))

    def try_to_bytes(self, value: Column) -> Column:
        return attempt(self.to_bytes(value))


@cache
def _parsed(schema: str) -> T.DataType:
    if TaskContext.get() is None:  # a worker has no session, and must not start one
        spark_session()  # the parser is Spark's: a program may begin with a schema
    return T.DataType.fromDDL(schema)
