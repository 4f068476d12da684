"""The headers of a record, checked where a program gives them: pairs of a name and bytes."""

from typing import Any

from streamskit.common.errors import StreamsError

Headers = tuple[tuple[str, bytes], ...]
"""Names may occur several times. As in Kafka, a value may be None; few programs have such headers, so types leave it
out."""


def headers_of(given: Any) -> Headers:
    """Return headers as a tuple of pairs.

    Args:
        given: a tuple or list of pairs of a name and bytes, or of a name and None; None stands for no headers.

    Raises:
        StreamsError: it is something else.

    >>> headers_of([("source", b"NYSE"), ("checked", None)])
    (('source', b'NYSE'), ('checked', None))
    """
    if given is None:
        return ()
    if not isinstance(given, tuple | list) or not all(
        isinstance(pair, tuple | list) and len(pair) == 2 for pair in given
    ):
        raise StreamsError(
            f"The headers of a record are pairs of a name and bytes, such as (('source', b'NYSE'),), and not {given!r}."
        )
    for name, value in given:
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes)):
            raise StreamsError(
                f"A record cannot have the header {name!r} with {value!r}: the name of a header is text, and its value "
                "bytes or None. For a value of text, write text.encode()."
            )
    return tuple((name, value) for name, value in given)
