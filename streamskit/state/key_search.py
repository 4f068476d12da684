"""What a search for keys finds: those that begin so, or, in double quotes, the one key that is meant."""


def matches(key: str, search: str) -> bool:
    """Whether a key begins with what is searched for, or, where that stands in double quotes, is it.

    >>> matches("Köln", "Kö"), matches("Köln", '"Kö"'), matches("Kö", '"Kö"')
    (True, False, True)
    """
    return key == beginning(search) if _is_whole(search) else key.startswith(search)


def beginning(search: str) -> str:
    """Return how all keys begin that match."""
    return search[1:-1] if _is_whole(search) else search


def _is_whole(search: str) -> bool:
    return len(search) > 1 and search[0] == search[-1] == '"'
