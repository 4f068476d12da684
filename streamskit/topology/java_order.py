"""The order in which Java's sets iterate over their elements. Kafka's description of a topology follows it."""

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


class PriorityQueue(Generic[Element]):
    """A heap like Java's `PriorityQueue`, which returns elements of equal priority in the same order as Java.

    >>> queue = PriorityQueue(lambda text: len(text))
    >>> for text in ("a", "b", "c"):
    ...     queue.offer(text)
    >>> [queue.poll() for _ in range(3)]
    ['a', 'c', 'b']
    """

    def __init__(self, priority: Callable[[Element], int]) -> None:
        self._priority = priority
        self._heap: list[Element] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Element]:
        return iter(self._heap)

    @property
    def first(self) -> Element:
        """The element that comes out next."""
        return self._heap[0]

    def offer(self, element: Element) -> None:
        """Put an element in."""
        self._heap.append(element)
        self._sift_up(len(self._heap) - 1)

    def poll(self) -> Element:
        """Take the first element out."""
        return self._out(0)

    def remove(self, element: Element) -> None:
        """Take an element out, wherever it is."""
        self._out(self._heap.index(element))

    def _out(self, place: int) -> Element:
        taken, last = self._heap[place], self._heap.pop()
        if place < len(self._heap):
            self._heap[place] = last
            self._sift_down(place)
            if self._heap[place] is last:
                self._sift_up(place)
        return taken

    def _sift_up(self, place: int) -> None:
        heap, above = self._heap, (place - 1) // 2
        while place > 0 and self._priority(heap[place]) < self._priority(heap[above]):
            heap[place], heap[above] = heap[above], heap[place]
            place, above = above, (above - 1) // 2

    def _sift_down(self, place: int) -> None:
        heap = self._heap
        while (below := 2 * place + 1) < len(heap):
            if below + 1 < len(heap) and self._priority(heap[below]) > self._priority(heap[below + 1]):
                below += 1
            if self._priority(heap[place]) <= self._priority(heap[below]):
                return
            heap[place], heap[below] = heap[below], heap[place]
            place = below


class Tree(NamedTuple, Generic[Element]):
    """One element of a sorted set, and those before and after it."""

    is_red: bool
    before: "Tree[Element] | None"
    element: Element
    after: "Tree[Element] | None"


class TreeSet(Generic[Element]):
    """A sorted set like Java's `TreeSet`: an element stays where the order put it when it was added.

    Kafka changes what its nodes are ordered by while they are in such a set, so it matters which elements a new one
    is compared with: those on the way down a red-black tree.
    """

    def __init__(self, order: Callable[[Element], tuple[int, str]]) -> None:
        self._order = order
        self._root: Tree[Element] | None = None

    def add(self, element: Element) -> None:
        """Insert an element at its current place in the order."""
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
    """Return the same elements with no red one below a red one, as Java does it.

    If both of an element's neighbours below are red, it turns red in their place; otherwise the middle one of the three
    goes up.
    """
    left, right = tree.before, tree.after
    if tree.is_red or not any(_is_above_red(each) for each in (left, right)):
        return tree
    if left and right and left.is_red and right.is_red:
        return Tree(True, left._replace(is_red=False), tree.element, right._replace(is_red=False))
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
    return Tree(False, before._replace(is_red=True), middle, Tree(True, between, last, after))


def _is_above_red(tree: Tree[Element] | None) -> bool:
    """Return whether an element is red and one right below it is too."""
    return (
        tree is not None and tree.is_red and any(each is not None and each.is_red for each in (tree.before, tree.after))
    )
