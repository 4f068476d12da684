"""The examples in docstrings (`>>>`) do what they show.

An example may use whatever its module imports or defines, all public names of `streamskit`, and the prepared names
below, so that it stays short. One without a result beside it only has to run. An example that needs a broker, a running
application or a long time carries `# doctest: +SKIP`; every other one is run here.
"""

import ast
import doctest
import importlib
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

import streamskit
from streamskit import (
    FixedKeyProcessor,
    FixedKeyRecord,
    GlobalKTable,
    KStream,
    KTable,
    Processor,
    Record,
    Serdes,
    StreamsBuilder,
    TimeWindows,
    Topology,
    ValueTransformerWithKey,
)
from streamskit.dsl.grouped_stream import WindowedKStream
from streamskit.operators.aggregate import CountOperator
from streamskit.operators.bytes_stores import BytesKeyValueStore
from streamskit.operators.paged_state import NoPages, PagedTable, PageStore
from streamskit.state.local import LocalKeyValueStore
from streamskit.state.stores import Store
from streamskit.state.timed import LocalSessionStore, LocalVersionedStore, LocalWindowStore
from streamskit.topology.nodes import Source

ROOT = Path(__file__).parents[3]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NEED_SPARK = ("columns", "dsl", "environment.session", "jvm", "state.stores", "testing", "topology")
"""Where examples call a function on Columns, so that they need a Spark session."""


class Shout(Processor):
    """A processor that an example may pass on."""

    def process(self, record: Record) -> None:
        self.context.forward(record)


class Length(FixedKeyProcessor):
    """A processor of values that an example may pass on."""

    def process(self, record: FixedKeyRecord) -> None:
        self.context.forward(record)


class RunningTotal(Shout):
    """A processor with a store that an example may pass on."""


class Numbered(ValueTransformerWithKey):
    """A transformer that an example may pass on."""

    def transform(self, key: str, value: str) -> str:
        return value


@dataclass
class Trade:
    """A class of a user's own."""

    symbol: str
    price: float


class Names:
    """The prepared names, each made when an example uses it; all of one program."""

    Shout, Length, RunningTotal, Numbered, Trade = Shout, Length, RunningTotal, Numbered, Trade
    F, Source, CountOperator, DoubleType = F, Source, CountOperator, DoubleType

    @cached_property
    def builder(self) -> StreamsBuilder:
        """A program that copies some orders."""
        builder = StreamsBuilder()
        builder.stream("orders").filter(lambda v: v.contains("Kafka")).to("out")
        return builder

    @cached_property
    def topology(self) -> Topology:
        return self.builder.build()

    @cached_property
    def trades(self) -> KStream:
        return self.builder.stream("trades", value=Serdes.json("symbol string, price double, size int"))

    @cached_property
    def lines(self) -> KStream:
        return self.builder.stream("lines")

    @cached_property
    def customers(self) -> KTable:
        return self.builder.table("customers", value=Serdes.json("name string, city string, country string"))

    @cached_property
    def people(self) -> KTable:
        return self.builder.table("people", value=Serdes.json("name string"))

    @cached_property
    def cities(self) -> KTable:
        return self.builder.table("cities", value=Serdes.json("mayor string"))

    @cached_property
    def countries(self) -> GlobalKTable:
        return self.builder.global_table("countries", value=Serdes.json("name string"))

    @cached_property
    def windowed(self) -> WindowedKStream:
        return self.trades.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace("5 seconds"))

    @cached_property
    def counts(self) -> KTable:
        return self.windowed.count("counts")

    @cached_property
    def text(self) -> Column:
        return F.lit("61.5")

    @cached_property
    def pages(self) -> PageStore:
        return NoPages()

    @cached_property
    def store(self) -> BytesKeyValueStore:
        return BytesKeyValueStore(PagedTable("prices", self.pages))

    @cached_property
    def streams(self) -> SimpleNamespace:
        """Of an application only its stores, each with the rows that examples show."""
        return SimpleNamespace(store=lambda name: STORES[name]())


class Example(NamedTuple):
    """The examples of one docstring."""

    module: str
    name: str
    text: str
    file: Path
    line: int

    @property
    def examples(self) -> list[doctest.Example]:
        return doctest.DocTestParser().get_examples(self.text)

    @property
    def is_skipped(self) -> bool:
        return all(doctest.SKIP in example.options for example in self.examples)


def files() -> Iterator[Path]:
    """The package's files but for the labs, whose checks are tried one by one elsewhere."""
    package = ROOT / "streamskit"
    return (path for path in sorted(package.rglob("*.py")) if "labs" not in path.relative_to(package).parts)


def examples_in(path: Path) -> Iterator[Example]:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")

    def within(node: ast.AST, name: str) -> Iterator[Example]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}".lstrip(".")
                text = ast.get_docstring(child)
                if text and ">>> " in text:
                    yield Example(module, inner, text, path, child.lineno)
                yield from within(child, inner)

    return within(ast.parse(path.read_text()), "")


EXAMPLES = [example for path in files() for example in examples_in(path)]
RUN = [
    pytest.param(
        example,
        id=f"{example.module.removeprefix('streamskit.')}:{example.name}",
        marks=[pytest.mark.spark] if example.module.removeprefix("streamskit.").startswith(NEED_SPARK) else [],
    )
    for example in EXAMPLES
    if not example.is_skipped
]


class OnlyWhatIsShown(doctest.OutputChecker):
    """Accepts any result where none is shown."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return not want or super().check_output(want, got, optionflags)


def names_for(example: Example) -> dict[str, Any]:
    """What an example may use: its module's names, the public ones, and those prepared names that it does not make."""
    module, prepared = importlib.import_module(example.module), Names()
    nodes = [node for one in example.examples for node in ast.walk(ast.parse(one.source)) if isinstance(node, ast.Name)]
    made = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    used = {node.id for node in nodes} - made - set(vars(module))
    public = {name: getattr(streamskit, name) for name in used.intersection(streamskit.__all__)}
    return public | vars(module) | {name: getattr(prepared, name) for name in used.intersection(dir(prepared))}


@pytest.mark.parametrize("example", RUN)
def test_an_example_does_what_it_shows(example: Example, request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("spark")
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(
        example.text, names_for(example), example.name, str(example.file), example.line
    )
    doctest.DocTestRunner(OnlyWhatIsShown(), optionflags=FLAGS).run(test, out=report.append)
    assert not report, "".join(report)


def test_no_example_is_overlooked() -> None:
    written = sum(len(re.findall(r"^\s*>>> ", path.read_text(), re.M)) for path in files())
    assert sum(len(example.examples) for example in EXAMPLES) == written


def counts_store() -> Any:
    store = LocalKeyValueStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    for key, count in (("AAPL", 3), ("KO", 42), ("KR", 7)):
        store.apply(key.encode(), struct.pack(">q", count), 0)
    return store


def windows_store() -> Any:
    windows = TimeWindows.of_size_with_no_grace(5000).advance_by(1000)
    value = Serdes.json("count long")
    store = LocalWindowStore(Store("trade-aggregates", "window", Serdes.string(), value, windows, 60_000))
    for start, count in ((0, 3), (1000, 2)):
        store.apply(b"KO" + struct.pack(">qi", start, 0), value.serialize({"count": count}), start)
    return store


def sessions_store() -> Any:
    store = LocalSessionStore(Store("visits", "session", Serdes.string(), Serdes.long(), None, 60_000))
    store.apply(b"alice" + struct.pack(">qq", 900, 0), struct.pack(">q", 3), 900)
    return store


def prices_store() -> Any:
    store = LocalVersionedStore(Store("prices", "versioned", Serdes.string(), Serdes.double(), None, 60_000))
    store.apply(b"KO", struct.pack(">d", 77.9), 100)
    store.apply(b"KO", struct.pack(">d", 78.4), 900)
    return store


STORES: dict[str, Callable[[], Any]] = {
    "counts": counts_store,
    "prices": prices_store,
    "trade-aggregates": windows_store,
    "visits": sessions_store,
}
