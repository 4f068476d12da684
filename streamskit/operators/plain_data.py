"""What operators keep, as bytes: plain values, and nothing that could run code when it is read.

A page may come from a topic, when an application's folder was rebuilt from it, and whoever can write to that topic must
not be able to choose what runs here.
"""

import io
import pickle
from typing import Any, cast

import numpy as np

PLAIN_TYPES = {
    ("collections", "OrderedDict"),
    *(("builtins", name) for name in ("list", "int", "float", "bool", "str", "bytes")),
}
"""What may be created by name; calling any of these runs no foreign code."""


def dumps(value: Any) -> bytes:
    """Return plain values as bytes: numbers, text, bytes, and lists, tuples, dicts and sets of them.

    NumPy's versions of these, such as the headers of a record from Arrow, become plain Python.
    """
    data = io.BytesIO()
    _Writer(data, protocol=5).dump(value)
    return data.getvalue()


def loads(data: bytes) -> Any:
    """Return the value that `dumps` turned into bytes.

    Raises:
        UnpicklingError: the bytes contain something else, which no operator has written.

    >>> loads(dumps({b"key": (1, None)}))
    {b'key': (1, None)}
    """
    return _Reader(io.BytesIO(data)).load()


class _Writer(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            plain = value.tolist()
            return type(plain), (plain,)
        return NotImplemented


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in PLAIN_TYPES:
            return super().find_class(module, name)
        if module.startswith("streamskit.operators.") and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and issubclass(found, tuple):  # a named tuple, such as a record held back
                return cast("type[Any]", found)
        raise pickle.UnpicklingError(f"{module}.{name} is not something that an operator keeps.")
