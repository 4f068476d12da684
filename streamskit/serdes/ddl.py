"""Spark's types as text, and back without Spark: who only reads and writes JSON needs no Java for it."""

import difflib
import re
from collections.abc import Iterator

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

SPARKS_OWN = (
    "interval", "char", "character", "varchar", "collate", "variant", "with", "without", "time",
    "geometry", "geography",
)  # fmt: skip
"""Words of types that only Spark's own parser knows."""

ELSEWHERE = {
    "str": "string", "text": "string", "object": "struct<name: type>", "dict": "map<string, type>", "float64": "double",
    "list": "array<type>", "number": "double", "int64": "bigint", "int32": "int", "datetime": "timestamp",
}  # fmt: skip
"""What types are called elsewhere."""

TYPES = (
    "Types are string, int, bigint, double, float, boolean, decimal(10,2), date, timestamp, binary, array<string>, "
    "map<string, int> and struct<name: string, size: int>."
)

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


def mistake(text: str) -> str | None:
    """Return a sentence about what is wrong with a text that says no type; None where only Spark's parser knows.

    >>> mistake("id int, colour strng")[:48]
    "'strng' is no type. Did you mean 'string'? Types"
    """
    tokens = _TOKEN.findall(text)
    names_a_type = len(tokens) < 2 or tokens[1] in "<("
    reader = _Reader(tokens)
    try:
        (reader.type if names_a_type else reader.fields)()
    except _UnknownTypeError as unknown:
        said = str(unknown)
    else:
        said = "" if reader.is_at_end else reader.after_a_type()
    return None if reader.is_at_sparks_own or not said else f"{said} {TYPES}"


def repeated_name(data_type: T.DataType) -> str | None:
    """Return a name that two fields of one struct have, wherever in a type; None if there is none.

    >>> repeated_name(parsed("a long, b array<struct<c:int,c:string>>"))
    'c'
    """
    structs = (each.fieldNames() for each in within(data_type) if isinstance(each, T.StructType))
    return next((name for names in structs for number, name in enumerate(names) if name in names[:number]), None)


def within(data_type: T.DataType) -> Iterator[T.DataType]:
    """Yield a type and all types in it, each before those in itself.

    >>> [each.typeName() for each in within(parsed("map<string,array<int>>"))]
    ['map', 'string', 'array', 'integer']
    """
    yield data_type
    inner: list[T.DataType] = []
    if isinstance(data_type, T.StructType):
        inner = [field.dataType for field in data_type]
    elif isinstance(data_type, T.MapType):
        inner = [data_type.keyType, data_type.valueType]
    elif isinstance(data_type, T.ArrayType):
        inner = [data_type.elementType]
    for each in inner:
        yield from within(each)


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


class _UnknownTypeError(Exception):
    """What comes next is none of the types here; the text says what is wrong, empty where only Spark knows."""


def _no_type(word: str) -> str:
    near = [ELSEWHERE[word]] if word in ELSEWHERE else difflib.get_close_matches(word, [*SINGLE, *DECIMALS], 1)
    return f"'{word}' is no type." + (f" Did you mean '{near[0]}'?" if near else "")


class _Reader:
    """Reads the tokens of a type from the front."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._tokens)

    @property
    def is_at_sparks_own(self) -> bool:
        """Whether the last token, or the next, belongs to a type that only Spark's own parser knows."""
        return any(each.lower() in SPARKS_OWN for each in self._tokens[max(0, self._at - 1) : self._at + 1])

    def after_a_type(self) -> str:
        """Return what is wrong with what follows a type, where a comma or the end is due; empty if Spark may know."""
        word = "" if self.is_at_end else self._tokens[self._at]
        if re.match(r"[\w`]", word):
            return f"There is no comma before '{word}'."
        return f"'{word}' does not belong there." if word and word in "<>(){}[]:;" else ""

    def type(self) -> T.DataType:
        word = self._take().lower()
        if word in SINGLE:
            return SINGLE[word]
        if word in DECIMALS:
            return self._decimal()
        if word not in ("array", "map", "struct"):
            raise _UnknownTypeError(_no_type(word) if re.fullmatch(r"\w+", word) else "")
        self._expect("<")
        if word == "array":
            made: T.DataType = T.ArrayType(self.type())
        elif word == "map":
            key = self.type()
            self._expect(",")
            made = T.MapType(key, self.type())
        else:
            made = T.StructType() if self._next() == ">" else self.fields()
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
            raise _UnknownTypeError(f"'{name}' is no name of a field." if name in "<>(){}[],:;" else "")
        self._is(":")
        if self._next() in (",", ">", ""):
            raise _UnknownTypeError(f"The field '{name}' has no type.")
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
            raise _UnknownTypeError(f"A decimal has numbers, such as decimal(10,2), not '{digits}'.")
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
            raise _UnknownTypeError("Something is missing at the end.")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, token: str) -> None:
        if not self._is(token):
            raise _UnknownTypeError(self.after_a_type() or f"'{token}' is missing.")
