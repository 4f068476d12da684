"""Wrong answers that are our own solution with a few words of it changed: a mistake is what a learner wrote instead.

They are in a lab's TOML file, as alternating old and new texts, and are tried on the solutions, in `labs/source`.
"""

import ast
import symtable
from dataclasses import dataclass
from typing import Any

import nbformat

from streamskit.common.errors import StreamsKitError
from streamskit.common.paths import project_dir
from streamskit.course.labs.lab_files import SOURCE


@dataclass(frozen=True)
class Edit:
    """A wrong answer, given by its differences from our solution.

    Args:
        lab: the name of the lab's notebook.
        exercise: what the answer is called there.
        texts: a text of the solution, its replacement, and so on in turn.
        notebook: where the solution is: the lab's source, unless it is the learners' version, with a stub.

    >>> Edit("01-getting-started", "heavy_widgets", ("> 100", ">= 100")).answer()  # doctest: +SKIP
    """

    lab: str
    exercise: str
    texts: tuple[str, ...] = ()
    notebook: str = SOURCE

    def answer(self) -> Any:
        """Return what the changed solution makes; without any texts, what the solution does.

        Only the cell of the exercise runs, and of those before it the statements that it needs.

        Raises:
            StreamsKitError: a text is not in the solution exactly once.
            NotImplementedError: the answer is a stub.
        """
        names: dict[str, Any] = {"__name__": self.lab}
        exec(compile(self.program(), f"{self.lab}, {self.exercise}", "exec"), names)
        return names[self.exercise]

    def program(self) -> ast.Module:
        """Return the changed cell, after the statements that it needs.

        Raises:
            StreamsKitError: a text is not in the solution exactly once.
        """
        before, cell = self._cells()
        for old, new in zip(self.texts[::2], self.texts[1::2], strict=True):
            if cell.count(old) != 1:
                raise StreamsKitError(
                    f"The solution of {self.exercise} in {self.lab} has to hold {old!r} once, and holds it "
                    f"{cell.count(old)} times: change the edit, or the solution."
                )
            cell = cell.replace(old, new)
        return ast.Module([*needed(before, _asked(cell)), *ast.parse(cell).body], [])

    def _cells(self) -> tuple[list[str], str]:
        """Return the code cells before that of the exercise, and that cell."""
        before: list[str] = []
        for cell in nbformat.read(project_dir() / self.notebook.format(name=self.lab), as_version=4).cells:
            if cell.metadata.get("nbgrader", {}).get("grade_id") == self.exercise:
                return before, cell.source
            before += [cell.source] if cell.cell_type == "code" else []
        raise StreamsKitError(f"No cell of {self.lab} has the solution of {self.exercise}.")


def needed(before: list[str], names: set[str]) -> list[ast.stmt]:
    """Return the statements of earlier cells that give these names a meaning, and all names that those need."""
    statements = [statement for cell in before for statement in ast.parse(cell).body]
    while True:
        kept = [statement for statement in statements if names & _given(statement)]
        asked = names.union(*(_asked(ast.unparse(statement)) for statement in kept))
        if asked == names:
            return kept
        names = asked


def names_made(statement: ast.stmt) -> set[str]:
    """Return the names that a definition or an assignment outside of functions gives a meaning to."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
        return {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return set()


def _given(statement: ast.stmt) -> set[str]:
    """Return the names that a statement makes or imports."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {each.asname or each.name.partition(".")[0] for each in statement.names}
    return names_made(statement)


def _asked(code: str) -> set[str]:
    """Return the names that code takes from its surroundings, including those used in its functions."""
    tables, found = [symtable.symtable(code, "cell", "exec")], set[str]()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        at_the_top = table.get_type() == "module"
        found |= {each.get_name() for each in table.get_symbols() if each.is_global() or at_the_top}
    return found
