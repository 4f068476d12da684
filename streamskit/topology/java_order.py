"""The order in which Java's sets hand out their elements. Kafka's description of a topology follows it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

Element = TypeVar("Element")


def hash_order(texts: Iterable[str]) -> list[str]:
    """Return texts in the order of a Java `HashSet`: by bucket, and within a bucket as they were added."""
    unique = list(dict.fromkeys(texts))
    buckets = 16
    while len(unique) > buckets * 3 // 4:
        buckets *= 2

    def bucket(text: str) -> int:
        code = _hash_code(text)
        return (code ^ code >> 16) % buckets

    return sorted(unique, key=bucket)


def _hash_code(text: str) -> int:
    """Return Java's `String.hashCode()` as an unsigned number of 32 bits."""
    code = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) % (1 << 32)
    return code


class Tree(NamedTuple, Generic[Element]):
    """One element of a sorted set, and those before and after it."""

    is_red: bool
    before: "Tree[Element] | None"
    element: Element
    after: "Tree[Element] | None"


class TreeSet(Generic[Element]):
    """A sorted set as Java's `TreeSet`: an element stays where the order put it when it was added.

    Kafka changes what its nodes are ordered by while they are in such a set, so it matters which elements a new one
    is compared with: those on the way down a red-black tree.
    """

    def __init__(self, order: Callable[[Element], tuple[int, str]]) -> None:
        self._order = order
        self._root: Tree[Element] | None = None

    def add(self, element: Element) -> None:
        """Put an element where the order says now."""
        self._root = self._added(self._root, element)._replace(is_red=False)

    def __iter__(self) -> Iterator[Element]:
        return self._walk(self._root)

    def _added(self, tree: Tree[Element] | None, new: Element) -> Tree[Element]:
        if tree is None:
            return Tree(True, None, new, None)
        if self._order(new) < self._order(tree.element):
            return _balanced(tree._replace(before=self._added(tree.before, new)))
        if self._order(new) > self._order(tree.element):
            return _balanced(tree._replace(after=self._added(tree.after, new)))
        return tree

    def _walk(self, tree: Tree[Element] | None) -> Iterator[Element]:
        if tree is not None:
            yield from self._walk(tree.before)
            yield tree.element
            yield from self._walk(tree.after)


def _balanced(tree: Tree[Element]) -> Tree[Element]:
    """Return the same elements with no red one below a red one: the middle one of the three goes up."""
    if tree.is_red:
        return tree
    left, right = tree.before, tree.after
    if left and left.is_red:
        if left.before and left.before.is_red:
            return _risen(left.before, left.element, left.after, tree.element, right)
        if left.after and left.after.is_red:
            inner = left.after
            return _risen(left._replace(after=inner.before), inner.element, inner.after, tree.element, right)
    if right and right.is_red:
        if right.before and right.before.is_red:
            inner = right.before
            return _risen(tree._replace(after=inner.before), inner.element, inner.after, right.element, right.after)
        if right.after and right.after.is_red:
            return _risen(tree._replace(after=right.before), right.element, right.after.before, right.after.element,
                          right.after.after)  # fmt: skip
    return tree


def _risen(
    before: Tree[Element], middle: Element, between: Tree[Element] | None, last: Element, after: Tree[Element] | None
) -> Tree[Element]:
    return Tree(True, before._replace(is_red=False), middle, Tree(False, between, last, after))
