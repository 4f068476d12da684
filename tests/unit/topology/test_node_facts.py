"""What there is to know of a kind of operator stands on its node: few modules name a kind, and few look at a type."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamskit.topology import nodes

PACKAGE = Path(__file__).parents[3] / "streamskit"
KINDS = {name for name in nodes.__all__ if isinstance(getattr(nodes, name), type)}
SMALL = (
    nodes.Filter,
    nodes.FlatMap,
    nodes.FlatMapValues,
    nodes.Map,
    nodes.MapValues,
    nodes.SelectKey,
    nodes.TableFilter,
    nodes.TableMapValues,
    nodes.ToStream,
)
FIELDS = {field.name for name in KINDS for field in getattr(getattr(nodes, name), "__dataclass_fields__", {}).values()}
MOST_CHECKS = 40


@pytest.mark.parametrize("kind", SMALL, ids=lambda kind: kind.__name__)
def test_an_operator_without_state_is_named_by_its_node_the_dsl_and_one_compile_function(kind: type) -> None:
    naming = {path.relative_to(PACKAGE) for path in engine() if kind.__name__ in names(path)}
    beyond = [path for path in naming if path.parts[0] not in ("topology", "dsl")]
    assert beyond == [Path("execution/stateless.py")]


def test_contributing_names_every_module_that_knows_of_the_small_operator_it_shows() -> None:
    told = (PACKAGE.parent / "CONTRIBUTING.md").read_text()
    table = told[told.index("`KStream.select_key` is one of") : told.index("It keeps no state")]
    naming = {str(path.relative_to(PACKAGE)) for path in engine() if nodes.SelectKey.__name__ in names(path)}
    assert set(re.findall(r"`((?!tests/)[\w/]+\.py)`", table)) == naming | {"topology/nodes/streams.py"}


def test_the_engine_asks_nodes_for_facts_and_seldom_for_their_type() -> None:
    checks = [f"{path.relative_to(PACKAGE)}:{check.lineno}" for path in engine() for check in type_checks(path)]
    assert 0 < len(checks) <= MOST_CHECKS, checks


def engine() -> Iterator[Path]:
    """The modules of the package, but for the labs."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "labs" not in path.relative_to(PACKAGE).parts:
            yield path


def names(path: Path) -> set[str]:
    """The names that stand in a module's code, its imports and its attributes."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.add(name)
            case ast.ImportFrom():
                found |= {alias.name for alias in node.names}
    return found


def type_checks(path: Path) -> Iterator[ast.expr]:
    """What asks for a kind of node: `isinstance`, `type(node) is`, or a field that only some kinds have."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]) if words(kinds) & KINDS:
                yield node
            case ast.Compare(left=ast.Call(func=ast.Name(id="type")), comparators=kinds) if words(*kinds) & KINDS:
                yield node
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(name), *_]) if name in FIELDS:
                yield node


def words(*expressions: ast.expr) -> set[str]:
    """The names and attributes of expressions."""
    each = [node for expression in expressions for node in ast.walk(expression)]
    return {getattr(node, "id", getattr(node, "attr", "")) for node in each}
