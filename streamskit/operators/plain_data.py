"""What operators keep, as bytes: plain values, and nothing that could run code when it is read.

A page may come from a topic, when the folder of an application was rebuilt, and whoever can write to that must not be
able to choose what runs here.
"""

import io
import pickle
from typing import Any, cast


def dumps(value: Any) -> bytes:
    """Return plain values as bytes: numbers, text, bytes, and lists, tuples, dicts and sets of them."""
    return pickle.dumps(value, protocol=5)


def loads(data: bytes) -> Any:
    """Return what `dumps` has made bytes of.

    Raises:
        UnpicklingError: it has something else in it, which no operator has written.

    >>> loads(dumps({b"key": (1, None)}))
    {b'key': (1, None)}
    """
    return _Reader(io.BytesIO(data)).load()


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return super().find_class(module, name)
        if module.startswith("streamskit.operators.") and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and issubclass(found, tuple):  # a named tuple, such as a record held back
                return cast("type[Any]", found)
        raise pickle.UnpicklingError(f"{module}.{name} is nothing that an operator keeps.")
