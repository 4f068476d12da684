"""The same values as in tests/java, by the same names, and the serde that each is for."""

import json
import math
from pathlib import Path
from typing import Any
from uuid import UUID

from streamskit import Serde, Serdes, Windowed

JAVA = Path(__file__).parents[2] / "java"

FLOAT = 13421773 / 2**27
"""What 0.1 is as a float of 32 bits."""

MOST = (2 - 2**-23) * 2.0**127
"""The largest float of 32 bits."""

CASES: dict[str, tuple[Serde, Any]] = {
    "string": (Serdes.string(), "Käse 🧀"),
    "string-empty": (Serdes.string(), ""),
    "long": (Serdes.long(), 258),
    "long-least": (Serdes.long(), -(2**63)),
    "integer": (Serdes.integer(), -2),
    "integer-most": (Serdes.integer(), 2**31 - 1),
    "short": (Serdes.short(), -513),
    "double": (Serdes.double(), 0.1),
    "double-minus-zero": (Serdes.double(), -0.0),
    "double-infinite": (Serdes.double(), -math.inf),
    "double-nan": (Serdes.double(), math.nan),
    "float": (Serdes.float(), FLOAT),
    "float-most": (Serdes.float(), MOST),
    "float-nan": (Serdes.float(), math.nan),
    "boolean-true": (Serdes.boolean(), True),
    "boolean-false": (Serdes.boolean(), False),
    "byte-array": (Serdes.byte_array(), b"\x00\xff\x07"),
    "byte-array-empty": (Serdes.byte_array(), b""),
    "bytes": (Serdes.bytes(), b"\x00\xff\x07"),
    "byte-buffer": (Serdes.byte_buffer(), b"\x00\xff\x07"),
    "uuid": (Serdes.uuid(), UUID("123E4567-e89b-12d3-a456-426614174000")),
    "void": (Serdes.void(), None),
    "list-long": (Serdes.list(Serdes.long()), [1, None, -1, None]),
    "list-long-empty": (Serdes.list(Serdes.long()), []),
    "list-integer": (Serdes.list(Serdes.integer()), [7]),
    "list-short": (Serdes.list(Serdes.short()), [1, -1]),
    "list-float": (Serdes.list(Serdes.float()), [1.5, None]),
    "list-double": (Serdes.list(Serdes.double()), [0.1]),
    "list-uuid": (Serdes.list(Serdes.uuid()), [UUID(int=2**64 + 2), None]),
    "list-string": (Serdes.list(Serdes.string()), ["a", None, "", "Käse"]),
    "list-string-empty": (Serdes.list(Serdes.string()), []),
    "list-boolean": (Serdes.list(Serdes.boolean()), [True, None]),
    "list-list": (Serdes.list(Serdes.list(Serdes.integer())), [[1, 2], []]),
    "time-windowed-string": (Serdes.time_windowed(Serdes.string(), 5000), Windowed("KO", 1000, 6000)),
    "time-windowed-long": (
        Serdes.time_windowed(Serdes.long(), 5000),
        Windowed(-1, 1_704_067_200_000, 1_704_067_205_000),
    ),
    "session-windowed-string": (Serdes.session_windowed(Serdes.string()), Windowed("KO", 1000, 9000)),
}


def recorded() -> dict[str, bytes | None]:
    """Return the bytes that Java wrote, by the name of the case."""
    texts: dict[str, str | None] = {}
    for file in ("serdes.json", "windowed.json"):
        texts |= json.loads((JAVA / file).read_text())
    return {name: None if text is None else bytes.fromhex(text) for name, text in texts.items()}


def same(one: Any, other: Any) -> bool:
    """Say whether two values are the same, not-a-number and the sign of zero too."""
    return repr(one) == repr(other)
