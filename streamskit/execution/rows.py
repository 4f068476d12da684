"""What one record becomes: rows to write, or rows for task operators."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as F


@dataclass
class Rows:
    """The rows that one record becomes: Columns with a row each (null if it is dropped), and Columns with many."""

    single: list[Column] = field(default_factory=list)
    many: list[Column] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.single or self.many)

    def __iadd__(self, other: "Rows") -> "Rows":
        self.single += other.single
        self.many += other.many
        return self

    @property
    def is_alone(self) -> bool:
        """Whether there is at most one row, so that nothing has to be exploded."""
        return len(self.single) == 1 and not self.many

    def as_array(self) -> Column:
        """Return all of them as one array."""
        arrays = ([F.array(*self.single)] if self.single else []) + self.many
        return F.concat(*arrays) if len(arrays) > 1 else arrays[0]


def either(alternatives: Sequence[Rows]) -> Rows:
    """Return the rows of records of which each is of one kind only, such as those of different topics."""
    there = [rows for rows in alternatives if rows]
    if not there:
        return Rows()
    if all(rows.is_alone for rows in there):
        return Rows([F.coalesce(*(rows.single[0] for rows in there))])
    every = Rows()
    for rows in there:
        every += rows
    return every
