"""Spark's types as text, and back without Spark: who only reads and writes JSON needs no Java for it."""

import re

from pyspark.sql import types as T

SINGLE: dict[str, T.DataType] = {
    **dict.fromkeys(("tinyint", "byte"), T.ByteType()),
    **dict.fromkeys(("smallint", "short"), T.ShortType()),
    **dict.fromkeys(("int", "integer"), T.IntegerType()),
    **dict.fromkeys(("bigint", "long"), T.LongType()),
    **dict.fromkeys(("float", "real"), T.FloatType()),
    "double": T.DoubleType(),
    "boolean": T.BooleanType(),
    "string": T.StringType(),
    "binary": T.BinaryType(),
    "date": T.DateType(),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), T.TimestampType()),
    "timestamp_ntz": T.TimestampNTZType(),
    "void": T.NullType(),
}
"""Types without parameters, by all their names."""

DECIMALS = ("decimal", "dec", "numeric")

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|\S)", re.DOTALL)
_PLAIN_NAME = re.compile(r"(?!\d+(e\d+)?([lsyfd]|bd)?$)\w+", re.ASCII | re.IGNORECASE)
"""A name that needs no backquotes: of ASCII letters, digits and underscores, and not what Spark reads as a number."""


def written(data_type: T.DataType) -> str:
    """Return a type as Spark's parser reads it: `simpleString`, with names in backquotes that need them."""
    if isinstance(data_type, T.StructType):
        return f"struct<{','.join(f'{_name(each.name)}:{written(each.dataType)}' for each in data_type)}>"
    if isinstance(data_type, T.ArrayType):
        return f"array<{written(data_type.elementType)}>"
    if isinstance(data_type, T.MapType):
        return f"map<{written(data_type.keyType)},{written(data_type.valueType)}>"
    return data_type.simpleString()


def parsed(text: str) -> T.DataType | None:
    """Return the type that a text says; None if it has something that only Spark's own parser knows.

    >>> parsed("symbol string, prices array<double>").simpleString()
    'struct<symbol:string,prices:array<double>>'
    """
    tokens = _TOKEN.findall(text)
    for whole in (_Reader.type, _Reader.fields):
        reader = _Reader(tokens)
        try:
            found = whole(reader)
        except _UnknownTypeError:
            continue
        if reader.is_at_end:
            return found
    return None


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


class _UnknownTypeError(Exception):
    """What comes next is none of the types here."""


class _Reader:
    """Reads the tokens of a type from the front."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._tokens)

    def type(self) -> T.DataType:
        word = self._take().lower()
        if word in SINGLE:
            return SINGLE[word]
        if word in DECIMALS:
            return self._decimal()
        self._expect("<")
        if word == "array":
            made: T.DataType = T.ArrayType(self.type())
        elif word == "map":
            key = self.type()
            self._expect(",")
            made = T.MapType(key, self.type())
        elif word == "struct":
            made = T.StructType() if self._next() == ">" else self.fields()
        else:
            raise _UnknownTypeError
        self._expect(">")
        return made

    def fields(self) -> T.StructType:
        found = [self._field()]
        while self._is(","):
            found.append(self._field())
        return T.StructType(found)

    def _field(self) -> T.StructField:
        name = self._take()
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        elif not re.fullmatch(r"\w+", name):
            raise _UnknownTypeError
        self._is(":")
        made = T.StructField(name, self.type())
        if self._is("not"):
            self._expect("null")
            made.nullable = False
        if self._is("comment"):
            self._take()
        return made

    def _decimal(self) -> T.DecimalType:
        if not self._is("("):
            return T.DecimalType()
        precision, scale = self._number(), 0
        if self._is(","):
            scale = self._number()
        self._expect(")")
        return T.DecimalType(precision, scale)

    def _number(self) -> int:
        digits = self._take()
        if not digits.isdecimal():
            raise _UnknownTypeError
        return int(digits)

    def _next(self) -> str:
        return "" if self.is_at_end else self._tokens[self._at].lower()

    def _is(self, token: str) -> bool:
        """Pass over a token if it comes next, and say whether it did."""
        found = self._next() == token
        self._at += found
        return found

    def _take(self) -> str:
        if self.is_at_end:
            raise _UnknownTypeError
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, token: str) -> None:
        if not self._is(token):
            raise _UnknownTypeError
