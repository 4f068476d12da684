"""`Secret`: text that only a client gets to see, and no reader of a log, a table or an exception."""

HIDDEN = "[hidden]"


class Secret:
    """Text that is not shown where a value is printed, formatted or put into a table; JSON refuses it.

    >>> secret = Secret("hush")
    >>> secret, str(secret), f"{secret}"
    ([hidden], '[hidden]', '[hidden]')
    >>> secret.reveal()
    'hush'

    Mirrors `org.apache.kafka.common.config.types.Password`.
    """

    __slots__ = ("_text",)

    def __init__(self, text: "str | Secret") -> None:
        self._text: str = revealed(text)

    def reveal(self) -> str:
        """Return the text; the caller has to keep it from being shown."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))


class Told(str):
    """A secret as a client's library gets it: its text, which is hidden where the library logs its settings."""

    def __repr__(self) -> str:
        return HIDDEN


def revealed(value: str | Secret) -> str:
    """Return text that may be secret.

    >>> revealed("plain"), revealed(Secret("hush"))
    ('plain', 'hush')
    """
    return value.reveal() if isinstance(value, Secret) else value
