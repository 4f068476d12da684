"""`BranchedKStream`: one stream split into several by predicates."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from streamskit.dsl.abstract_stream import ColumnFunction
from streamskit.topology import Branch, PassThrough

if TYPE_CHECKING:
    from streamskit.dsl.kstream import KStream

Chain = Callable[["KStream"], "KStream | None"]
"""What to do with a branch: takes its stream and returns the one to hand back, or None."""


class BranchedKStream:
    """A stream being split; `default_branch` or `no_default_branch` ends it and returns the branches by name.

    A branch's name is that of the split and its own: "b-" and "high" make "b-high". Without a name of its own it is
    the branch's number, the default branch 0. Mirrors `org.apache.kafka.streams.kstream.BranchedKStream`.
    """

    def __init__(self, stream: "KStream", name: str | None = None) -> None:
        self._stream = stream
        self._name = stream._builder._name_for("KSTREAM-BRANCH", name)
        self._root = stream._next(PassThrough, self._name)
        self._predicates: list[ColumnFunction] = []
        self._branches: dict[str, KStream] = {}

    def branch(
        self, predicate: ColumnFunction, name: str | None = None, chain: Chain | None = None
    ) -> "BranchedKStream":
        """Take the records for which `predicate` is true and that no earlier branch took.

        Args:
            predicate: a Column function of the value, or of key and value.
            name: what the branch's name ends with.
            chain: a function to call with the branch at once; the stream it returns takes the branch's place, and if
                it returns none, the branch is not handed back.

        Raises:
            TopologyError: the predicate does not make a true-or-false Column.

        >>> trades.split().branch(lambda v: v.price > 100, chain=lambda branch: branch.to("high"))

        Mirrors `BranchedKStream#branch(predicate, Branched)`.
        """
        self._stream._check_predicate(predicate, "branch", f"{self._name}{name or len(self._predicates) + 1}")
        self._predicates.append(predicate)
        self._add(len(self._predicates) - 1, name or str(len(self._predicates)), chain)
        return self

    def default_branch(self, name: str | None = None, chain: Chain | None = None) -> "dict[str, KStream]":
        """Take the records that no branch took, and return all branches by name. Mirrors `#defaultBranch`."""
        self._add(-1, name or "0", chain)
        return self._branches

    def no_default_branch(self) -> "dict[str, KStream]":
        """Drop the records that no branch took, and return the branches by name. Mirrors `#noDefaultBranch`."""
        return self._branches

    def _add(self, index: int, ending: str, chain: Chain | None) -> None:
        name = self._stream._builder._name_for("KSTREAM-BRANCH", self._name + ending)
        branch = self._root._next(Branch, name, predicates=tuple(self._predicates), index=index)
        kept = branch if chain is None else chain(branch)
        if kept is not None:
            self._branches[name] = kept
