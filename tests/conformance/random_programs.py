"""Programs made up at random, as data: how they are built and run here. `RandomPrograms.java` does the same there."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import (
    BufferConfig,
    EmitStrategy,
    GlobalKTable,
    JoinWindows,
    KStream,
    KTable,
    LogAndContinue,
    Materialized,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimestampExtractor,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    UnlimitedWindows,
)
from tests.conformance.queries import ask
from tests.conformance.random_processors import (
    Asking,
    Counting,
    Doubling,
    Fixing,
    Looking,
    Numbering,
    Sessioning,
    Versioning,
    Windowing,
)
from tests.conformance.test_vectors import row, stored

Step = dict[str, Any]
Program = dict[str, Any]
LONG = Serdes.long()

BAD = b"bad"
"""What the value of a record is that no serde of these programs reads."""

RECORDED = Path(__file__).with_name("random_programs.jsonl")
"""Programs with the outcomes that Kafka Streams has, one a line."""

# ---- what the functions of the programs do, as in RandomPrograms.java ------------------------------------------------


def holds(value: Column, number: int) -> Column:
    return F.coalesce(value, F.lit(1)) % 3 != number % 3


def letter(value: Column) -> Column:
    return F.substring(F.lit("abcd"), (F.pmod(value, F.lit(4)) + 1).cast("int"), F.lit(1))


def letter_of_both(key: Column, value: Column) -> Column:
    return letter(value + F.length(key).cast("long"))


def both(one: Column, two: Column) -> Column:
    hundred = F.lit(100).cast("long")
    return F.coalesce(one, hundred) + 3 * F.coalesce(two, hundred)


def long(number: int) -> Column:
    return F.lit(number).cast("long")


def unless_fourth(value: Column, number: int) -> Column:
    return F.when(value % 4 == number, F.lit(None).cast("long")).otherwise(value)


def reduced(one: int, two: int) -> int:
    return (one * 2 + two) % 1000


def summed(key: str, value: int | None, total: int) -> int:
    return total + (value or 0)  # a session's aggregator is called without a value, too


def doubled(key: str, value: int | None, total: int) -> int:
    return total * 2 + (value or 0)


def failing(key: str, value: int | None, total: int) -> int:
    if value is not None and value >= 0 and value % 5 == 4:  # as Java, whose remainder of a negative number is negative
        raise ValueError(f"{value} is not to be added")
    return total + (value or 0)


def sometimes_none(key: str, value: int | None, total: int | None) -> int | None:
    number = 1 if value is None else value
    return None if number % 5 == 0 else (50 if total is None else total) + number


# ---- building them ---------------------------------------------------------------------------------------------------


def windows_of(step: Step) -> Any:
    windows = step["windows"]
    if windows["kind"] == "unlimited":
        return UnlimitedWindows.of().start_on(windows["start"])
    size, grace = windows["size"], windows["grace"]
    match windows["kind"]:
        case "session":
            return SessionWindows.of_inactivity_gap_and_grace(size, grace)
        case "sliding":
            return SlidingWindows.of_time_difference_and_grace(size, grace)
    return TimeWindows.of_size_and_grace(size, grace).advance_by(windows["advance"])


def _grouped(step: Step, stream: KStream) -> Any:
    if step.get("group") is None:
        return stream.group_by_key()
    return stream.group_by(lambda k, v: F.concat(F.lit("g"), (v % (step["group"] + 1)).cast("string")))


def _kept(step: Step) -> Materialized | str | None:
    """Return how the table of a step is kept."""
    settings = {name: step[name] for name in ("retention", "history", "caching") if step.get(name) is not None}
    return Materialized(step.get("store"), **settings) if settings else step.get("store")


def _aggregate(builder: StreamsBuilder, step: Step, stream: KStream, other: None) -> KTable:
    grouped = _grouped(step, stream)
    if step.get("windows"):
        grouped = grouped.windowed_by(windows_of(step))
        if step["emit"]:
            grouped = grouped.emit_strategy(EmitStrategy.on_window_close())
    store = _kept(step)
    match step["fold"]:
        case "count":
            return grouped.count(store)
        case "reduce":
            return grouped.reduce(reduced, store)
        case "column sum":
            return grouped.aggregate(lambda v: F.sum(v), store)
    function = {"sum": summed, "none": sometimes_none, "failing": failing}[step["fold"]]
    return grouped.aggregate(lambda: 0, function, store, value=LONG, merger=_merger(step))


def _cogroup(builder: StreamsBuilder, step: Step, stream: KStream, other: KStream) -> KTable:
    grouped = _grouped(step, stream).cogroup(summed).cogroup(other.group_by_key(), doubled)
    if step.get("windows"):
        grouped = grouped.windowed_by(windows_of(step))
    return grouped.aggregate(lambda: 0, _kept(step), value=LONG, merger=_merger(step))


def _merger(step: Step) -> Callable[[str, int, int], int] | None:
    """Return how two sessions become one, where a step has sessions."""
    return (lambda key, one, two: one + two) if (step.get("windows") or {}).get("kind") == "session" else None


def _stream_stream(builder: StreamsBuilder, step: Step, stream: KStream, other: KStream) -> KStream:
    given = step["windows"]
    windows = JoinWindows.of_time_difference_and_grace(given["size"], given["grace"])
    if given.get("before") is not None:
        windows = windows.before(given["before"])
    if given.get("after") is not None:
        windows = windows.after(given["after"])
    return _joining(step, stream)(other, _joiner(step), windows)


def _joining(step: Step, one: Any) -> Any:
    return {"inner": one.join, "left": one.left_join, "outer": getattr(one, "outer_join", None)}[step["kind"]]


def _joiner(step: Step) -> Callable[..., Column]:
    if not step.get("keyed"):
        return both
    return lambda key, one, two: both(one, two) + F.coalesce(F.length(key), F.lit(7)).cast("long")


def _split(builder: StreamsBuilder, step: Step, stream: KStream, other: None) -> list[KStream]:
    branches = stream.split(step["name"]).branch(lambda v: holds(v, step["n"]), "1").default_branch("0")
    return [branches[step["name"] + "1"], branches[step["name"] + "0"]]


def _process(builder: StreamsBuilder, step: Step, stream: KStream, other: None) -> KStream:
    store, kind, number = _key_value(builder, step), step["kind"], step["n"]
    return stream.process(lambda: Counting(store, kind, number), stores=[store], value=LONG)


def _key_value(builder: StreamsBuilder, step: Step) -> str:
    name: str = step["store"]
    builder.add_state_store(Stores.persistent_key_value_store(name, Serdes.string(), LONG))
    return name


def _process_windows(builder: StreamsBuilder, step: Step, stream: KStream, other: None) -> KStream:
    store, kind, size = step["store"], step["kind"], step["size"]
    make = Stores.in_memory_window_store if step["memory"] else Stores.persistent_window_store
    builder.add_state_store(make(store, step["retention"], size, Serdes.string(), LONG))
    return stream.process(lambda: Windowing(store, kind, size), stores=[store], value=LONG)


def _process_sessions(builder: StreamsBuilder, step: Step, stream: KStream, other: None) -> KStream:
    store, kind, gap = step["store"], step["kind"], step["gap"]
    make = Stores.in_memory_session_store if step["memory"] else Stores.persistent_session_store
    builder.add_state_store(make(store, step["retention"], Serdes.string(), LONG))
    return stream.process(lambda: Sessioning(store, kind, gap), stores=[store], value=LONG)


def _process_versions(builder: StreamsBuilder, step: Step, stream: KStream, other: None) -> KStream:
    store, number = step["store"], step["n"]
    builder.add_state_store(
        Stores.persistent_versioned_key_value_store(store, step["history"], Serdes.string(), LONG)
    )  # fmt: skip
    return stream.process(lambda: Versioning(store, number), stores=[store], value=LONG)


def _process_values(builder: StreamsBuilder, step: Step, stream: KStream, other: None) -> KStream:
    store, number = _key_value(builder, step), step["n"]
    return stream.process_values(lambda: Fixing(store, number), stores=[store], value=LONG)


def _transform_values(builder: StreamsBuilder, step: Step, table: KTable, other: None) -> KTable:
    store = _key_value(builder, step)
    return table.transform_values(lambda: Numbering(store), [store], step.get("kept"), value=LONG)


def _look_up(builder: StreamsBuilder, step: Step, stream: KStream, other: None) -> KStream:
    store = step["reads"]
    return stream.process(lambda: Looking(store), stores=[store], value=LONG)


def _global_store(builder: StreamsBuilder, step: Step, *_: None) -> str:
    name: str = step["store"]
    store = Stores.persistent_key_value_store(name, Serdes.string(), LONG).with_logging(False)
    builder.add_global_store(store, step["topic"], lambda: Doubling(name), value=LONG)
    return name


def _ask(builder: StreamsBuilder, step: Step, stream: KStream, store: str) -> KStream:
    return stream.process(lambda: Asking(store), value=LONG)


def _stream(builder: StreamsBuilder, step: Step, *_: None) -> KStream:
    return builder.stream(*topics_read(step), value=LONG, timestamps=_timestamps(step))


def topics_read(step: Step) -> list[str]:
    """Return the topics that a source reads."""
    return [step["topic"], *step.get("topics", ())]


def _timestamps(step: Step) -> TimestampExtractor | None:
    unit = step.get("unit", 1)
    match step.get("extractor"):
        case "skip":
            return TimestampExtractor.of(lambda v: F.when(v != 3, v * 10 * unit), invalid="skip")
        case "partition time":
            # Kafka Streams' partition time is -1 before the first record, and a record with that time is skipped
            return TimestampExtractor.of(
                lambda v: F.when(v != 3, v * 10 * unit), invalid="skip", missing="partition time"
            )  # fmt: skip
    return None


def _table(builder: StreamsBuilder, step: Step, *_: None) -> KTable:
    return builder.table(step["topic"], value=LONG, materialized=_kept(step), timestamps=_timestamps(step))


def _table_aggregate(builder: StreamsBuilder, step: Step, table: KTable, other: None) -> KTable:
    grouped = table.group_by(lambda k, v: (F.concat(F.lit("t"), (v % (step["n"] + 1)).cast("string")), v))
    match step["fold"]:
        case "count":
            return grouped.count(_kept(step))
        case "reduce":
            return grouped.reduce(lambda total, v: total + v, lambda total, v: total - v, _kept(step))
    return grouped.aggregate(lambda: 0, doubled, lambda k, v, total: total - 3 * v, _kept(step), value=LONG)


def _suppress(builder: StreamsBuilder, step: Step, table: KTable, other: None) -> KTable:
    buffer = BufferConfig.unbounded()
    if step.get("records"):
        buffer = BufferConfig.max_records(step["records"]).emit_early_when_full()
    return table.suppress(Suppressed.until_time_limit(step["limit"], buffer))


def _to(builder: StreamsBuilder, step: Step, node: KStream | KTable, other: None) -> None:
    stream = node.to_stream() if isinstance(node, KTable) else node
    if step.get("topics"):
        odd, even = (F.lit(topic) for topic in step["topics"])
        stream.to(lambda v: F.when(v % 2 == 0, even).otherwise(odd))
    else:
        stream.to(step["topic"])


def _windowed_group(builder: StreamsBuilder, step: Step, table: KTable, other: None) -> KTable:
    grouped = table.group_by(lambda k, v: (F.concat(F.lit("w"), (k.start % 3).cast("string")), v))
    return grouped.reduce(lambda total, v: total + v, lambda total, v: total - v, _kept(step))


def _foreign_key(builder: StreamsBuilder, step: Step, table: KTable, other: KTable) -> KTable:
    foreign_key = letter_of_both if step.get("keyed") else letter
    return _joining(step, table)(other, both, foreign_key=foreign_key, materialized=_kept(step))


def _stream_table(builder: StreamsBuilder, step: Step, stream: KStream, table: KTable) -> KStream:
    grace = {"grace": step["grace"]} if step.get("grace") is not None else {}
    return _joining(step, stream)(table, _joiner(step), **grace)


def _stream_global(builder: StreamsBuilder, step: Step, stream: KStream, table: GlobalKTable) -> KStream:
    return _joining(step, stream)(table, _joiner(step), key_selector=letter)


BUILDERS: dict[str, Callable[..., Any]] = {
    "stream": _stream,
    "global_store": _global_store,
    "table": _table,
    "global": lambda b, s, *_: b.global_table(s["topic"], value=LONG, materialized=s.get("store")),
    "to": _to,
    "filter": lambda b, s, one, _: one.filter(lambda v: holds(v, s["n"])),
    "filter_not": lambda b, s, one, _: one.filter_not(lambda v: holds(v, s["n"])),
    "map_values": lambda b, s, one, _: one.map_values(lambda v: v + long(s["n"])),
    "nullify": lambda b, s, one, _: one.map_values(lambda v: unless_fourth(v, s["n"])),
    "with_key": lambda b, s, one, _: one.map_values(lambda k, v: v + F.coalesce(F.length(k), F.lit(7)).cast("long")),
    "select_key": lambda b, s, one, _: one.select_key(
        lambda k, v: F.concat(F.lit("n"), (v % (s["n"] + 1)).cast("string"))
    ),
    "map": lambda b, s, one, _: one.map(lambda k, v: (letter(v), v + long(s["n"]))),
    "flat_map_values": lambda b, s, one, _: one.flat_map_values(lambda v: F.array(v, v + long(1))),
    "flat_map": lambda b, s, one, _: one.flat_map(
        lambda k, v: F.array(
            F.struct(k.alias("k"), v.alias("v")), F.struct(F.lit("f").alias("k"), (v + long(s["n"])).alias("v"))
        )
    ),
    "merge": lambda b, s, one, two: one.merge(two),
    "repartition": lambda b, s, one, _: one.repartition(),
    "split": _split,
    "process": _process,
    "process_windows": _process_windows,
    "process_sessions": _process_sessions,
    "process_versions": _process_versions,
    "process_values": _process_values,
    "look_up": _look_up,
    "ask": _ask,
    "to_table": lambda b, s, one, _: one.to_table(_kept(s)),
    "aggregate": _aggregate,
    "cogroup": _cogroup,
    "stream_stream": _stream_stream,
    "stream_table": _stream_table,
    "stream_global": _stream_global,
    "table_filter": lambda b, s, one, _: one.filter(lambda v: holds(v, s["n"]), _kept(s)),
    "table_filter_not": lambda b, s, one, _: one.filter_not(lambda v: holds(v, s["n"]), _kept(s)),
    "table_map_values": lambda b, s, one, _: one.map_values(lambda v: v + long(s["n"]), _kept(s)),
    "table_nullify": lambda b, s, one, _: one.map_values(lambda v: unless_fourth(v, s["n"]), _kept(s)),
    "to_stream": lambda b, s, one, _: one.to_stream(),
    "to_stream_keyed": lambda b, s, one, _: one.to_stream(
        lambda k, v: F.concat(k, (F.coalesce(v, F.lit(9)) % 2).cast("string"))
    ),
    "table_aggregate": _table_aggregate,
    "table_table": lambda b, s, one, two: _joining(s, one)(two, both, materialized=_kept(s)),
    "foreign_key": _foreign_key,
    "transform_values": _transform_values,
    "suppress": _suppress,
    "windowed_filter": lambda b, s, one, _: one.filter(lambda v: holds(v, s["n"]), _kept(s)),
    "windowed_map_values": lambda b, s, one, _: one.map_values(lambda v: v + long(s["n"]), _kept(s)),
    "windowed_limit": _suppress,
    "windowed_suppress": lambda b, s, one, _: one.suppress(Suppressed.until_window_closes()),
    "windowed_join": lambda b, s, one, two: _joining(s, one)(two, both, materialized=_kept(s)),
    "windowed_to_stream": lambda b, s, one, _: one.to_stream(
        lambda k, v: F.concat(k.key, (k.start % 2).cast("string"))
    ),
    "windowed_group": _windowed_group,
}


def topology_of(program: Program) -> Topology:
    """Return a program, built."""
    builder, nodes = StreamsBuilder(), list[Any]()
    for number, step in enumerate(program["steps"]):
        if step["op"] == "skip":  # of a split the second node, which is there; or a step that was taken out
            nodes += [None] * (number + 1 - len(nodes))
            continue
        one, two = (None if step.get(name) is None else nodes[step[name]] for name in ("of", "with"))
        made = BUILDERS[step["op"]](builder, step, one, two)
        nodes += made if isinstance(made, list) else [made]
    return builder.build()


def outcome(program: Program, partitions: int | None = None) -> Program:
    """Return what the test driver makes of a program: what it writes and drops after which record, and keeps.

    Args:
        program: as the inventor makes them.
        partitions: of its topics; then each sub-topology has tasks of its own, and they have no stream time in common.
    """
    topology = topology_of(program)
    sinks = [step for step in program["steps"] if step["op"] == "to"]
    written: dict[str, list[Step]] = {
        topic: [] for step in sinks for topic in step.get("topics") or [step["topic"]]
    }  # fmt: skip
    dropped, before = list[list[int]](), 0
    settings: dict[str, Any] = {"emit_interval": 0, "cache": program.get("cache", False), "partitions": partitions}
    settings |= handlers_of(program)
    with TopologyTestDriver(topology, "oracle", **settings) as driver:
        outputs = {name: driver.create_output_topic(name) for name in written}
        for number, record in enumerate(program["records"]):
            if "advance" in record:
                driver.advance_wall_clock_time(record["advance"])
            else:
                topic = driver.create_input_topic(record["topic"], value=Serdes.bytes() if record.get("bad") else None)
                value = BAD if record.get("bad") else record["value"]
                headers = tuple((name, value.encode()) for name, value in record.get("headers", {}).items())
                topic.pipe_input(record["key"], value, record["timestamp"], headers=headers)
            for name, output in outputs.items():
                written[name] += [row(each, after_step=number) for each in output.read_records_to_list()]
            if driver.dropped() > before:
                dropped.append([number, driver.dropped() - before])
                before = driver.dropped()
        stores = {name: list(stored(driver, name, kind)) for name, kind in store_kinds(program, topology).items()}
        answers = [
            ask(driver.state_store(query["store"]), query | {"op": query["op"].split()[0]})
            for query in program.get("queries", [])
        ]
    made = {"describe": str(topology.describe()), "outputs": written, "dropped": dropped, "stores": stores}
    return made | ({"answers": answers} if answers else {})


def handlers_of(program: Program) -> dict[str, Any]:
    """Return the settings by which a program goes on without the records that it fails on, if it does."""
    if not program.get("continue"):
        return {}
    return {"deserialization_handler": LogAndContinue(), "processing_handler": LogAndContinue()}


def store_kinds(program: Program, topology: Topology) -> dict[str, str]:
    """Return the stores of a program that can list their rows, each with what the vectors call its kind."""
    named = {name: store for name, store in topology.stores.items() if name.startswith("s-")}
    kinds = {name: STORE_KINDS[store.kind] for name, store in named.items() if store.kind in STORE_KINDS}
    return kinds | {step["store"]: KEPT_BY[step["op"]] for step in program["steps"] if step["op"] in KEPT_BY}


def differences(expected: Program, found: Program) -> list[str]:
    """Return what differs between two outcomes of one program, in words."""
    said = []
    if _described(expected) != _described(found):
        said.append(f"described as\n{found['describe']}\nand there\n{expected['describe']}")
    if expected["dropped"] != found["dropped"]:
        said.append(f"dropped {found['dropped']}, there {expected['dropped']}")
    for topic, rows in expected["outputs"].items():
        if found["outputs"][topic] != rows:
            said.append(f"wrote to {topic}: {found['outputs'][topic]}, there {rows}")
    for number, answer in enumerate(expected.get("answers", [])):
        if found["answers"][number] != answer:
            said.append(f"answered question {number} with {found['answers'][number]}, there {answer}")
    for store, rows in expected["stores"].items():
        if _unordered(found["stores"][store]) != _unordered(rows):
            said.append(f"kept in {store}: {found['stores'][store]}, there {rows}")
    return said


def _described(outcome: Program) -> str:
    """Return how a program was described, without the names of its functions, which Java makes up."""
    return re.sub("(?<=extractor class: ).*", "a function)", outcome["describe"]).strip()


def _unordered(rows: list[Step]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


KEPT_BY = {
    **dict.fromkeys(("process", "process_values", "transform_values", "global_store"), "key-value"),
    "process_windows": "window",
    "process_sessions": "session",
}
"""What the vectors call the stores of processors, by the step."""

STORE_KINDS = {"key-value": "timestamped-key-value", "window": "timestamped-window", "session": "session"}
"""What the vectors call the kinds of stores that can list their rows."""
