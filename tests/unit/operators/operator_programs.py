"""The programs of the recorded vectors, wired by hand from task operators."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streamskit.api.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows
from streamskit.operators import (
    OUT_OF_ORDER,
    AggregateOperator,
    CountOperator,
    LatestValueOperator,
    Operator,
    OperatorRecord,
    Output,
    PartitionTimeOperator,
    ResponseJoinOperator,
    SessionAggregateOperator,
    SlidingWindowAggregateOperator,
    StreamJoinOperator,
    StreamTableJoinOperator,
    SubscriptionJoinOperator,
    SubscriptionSendOperator,
    SuppressOperator,
    TableAggregateOperator,
    TableJoinOperator,
    WindowAggregateOperator,
)
from streamskit.operators.records import NO_TIMESTAMP
from streamskit.serdes import LONG, Serde, SessionWindowedSerde, TimeWindowedSerde
from tests.unit.operators.operator_harness import JSON, STRING, Harness, Rows, decode, plain, text

Route = Callable[[Harness, str, OperatorRecord], Rows]


@dataclass
class Program:
    operators: list[Operator]
    route: Route
    options: dict[str, Any] = field(default_factory=dict)


def one(
    operator: Operator, value: Callable[[Output], Any], key: Serde = STRING, to: str = "out", **options: Any
) -> Program:
    """One operator from one topic to another."""

    def route(task: Harness, topic: str, record: OperatorRecord) -> Rows:
        for output in task.give(0, 0, record):
            yield to, plain(output, value, key)

    return Program([operator], route, options)


def then(first: Operator, second: Operator, value: Callable[[Output], Any], key: Serde = STRING) -> Program:
    """Two operators after one another."""

    def route(task: Harness, topic: str, record: OperatorRecord) -> Rows:
        for update in task.give(0, 0, record):
            for output in task.give(1, 0, as_record(update)):
                yield "out", plain(output, value, key)

    return Program([first, second], route)


def as_record(output: Output, key: bytes | None = None, extra: bytes | None = None) -> OperatorRecord:
    return OperatorRecord(key or output.key, output.value, output.old, extra, output.timestamp, output.headers)


def regrouped(
    update: OperatorRecord | Output, select: Callable[[bytes], tuple[bytes | None, bytes | None]]
) -> list[OperatorRecord]:
    """What `KTable.group_by` makes of an update: one record if the row stays in its group, else two."""
    none: tuple[None, None] = (None, None)
    old_key, old = none if update.old is None else select(update.old)
    new_key, new = none if update.value is None else select(update.value)
    if old_key is not None and old_key == new_key:
        return [OperatorRecord(new_key, new, old, None, update.timestamp, update.headers)]
    parts = [OperatorRecord(old_key, None, old, None, update.timestamp, update.headers),
             OperatorRecord(new_key, new, None, None, update.timestamp, update.headers)]  # fmt: skip
    return [part for part in parts if part.key is not None]


def grouped_table(
    fold: TableAggregateOperator, select: Callable[[bytes], tuple[bytes | None, bytes | None]]
) -> Program:
    def route(task: Harness, topic: str, record: OperatorRecord) -> Rows:
        for update in task.give(0, 0, record):
            for part in regrouped(update, select):
                for output in task.give(1, 0, part):
                    yield "out", plain(output, decode(fold.result))

    return Program([LatestValueOperator("rows"), fold], route)


def by_region(data: bytes) -> tuple[bytes | None, bytes | None]:
    region = JSON.deserialize(data).get("region")
    return (None, None) if region is None else (region.encode(), data)


def amount_by_region(data: bytes) -> tuple[bytes | None, bytes | None]:
    key, _ = by_region(data)
    return key, None if key is None else LONG.serialize(JSON.deserialize(data)["amount"])


def not_used(*_: Any) -> Any:
    raise AssertionError("A count calls no function.")


def table_count(name: str, value: Serde) -> TableAggregateOperator:
    # As the DSL says it: a count is a fold over the rows, whatever they hold.
    add, subtract = (lambda key, row, count: count + 1), (lambda key, row, count: count - 1)
    return TableAggregateOperator(name, STRING, value, LONG, lambda: 0, add, subtract)


# ---- joins -----------------------------------------------------------------------------------------------------------


def plus(output: Output) -> str:
    return f"{text(output.value)}+{text(output.other)}"


def stream_join(windows: JoinWindows, outer: tuple[bool, bool] = (False, False), **options: Any) -> Program:
    def route(task: Harness, topic: str, record: OperatorRecord) -> Rows:
        for output in task.give(0, 0 if topic == "left" else 1, record):
            yield "out", plain(output, plus)

    return Program([StreamJoinOperator("join", windows, outer)], route, options)


def lookup(operator: StreamTableJoinOperator) -> Program:
    def route(task: Harness, topic: str, record: OperatorRecord) -> Rows:
        for output in task.give(0, 0 if topic == "stream" else 1, record):
            yield "out", plain(output, plus)

    return Program([operator], route)


def country(task: Harness, topic: str, record: OperatorRecord) -> Rows:
    value = JSON.deserialize(record.value) if topic == "stream" else {}
    wanted = (value or {}).get("country")
    record = record._replace(extra=wanted.encode() if wanted else None)
    for output in task.give(0, 0 if topic == "stream" else 1, record):
        yield "out", plain(output, lambda made: f"{JSON.deserialize(made.value)['id']}@{text(made.other)}")


def rekeyed(task: Harness, topic: str, record: OperatorRecord) -> Rows:
    if topic == "orders":
        customer = JSON.deserialize(record.value).get("customer")
        if customer is None:
            return
        record = record._replace(key=customer.encode())
    for output in task.give(0, 0 if topic == "orders" else 1, record):
        yield "out", plain(output, lambda made: f"{JSON.deserialize(made.value)['id']}:{text(made.other)}")


def table_join(outer: tuple[bool, bool]) -> Program:
    def route(task: Harness, topic: str, record: OperatorRecord) -> Rows:
        side = 0 if topic == "left" else 1
        for update in task.give(1 + side, 0, record):
            for output in task.give(0, side, as_record(update)):
                is_deletion = output.value is None and output.other is None
                yield "out", plain(output, lambda made, gone=is_deletion: None if gone else plus(made))  # type: ignore[misc]

    return Program(
        [TableJoinOperator("join", outer), LatestValueOperator("left rows"), LatestValueOperator("right rows")], route
    )


def foreign_key(task: Harness, topic: str, record: OperatorRecord) -> Rows:
    if record.key is None:
        task.dropped += 1
        return
    if topic == "orders":
        customer = None if record.value is None else JSON.deserialize(record.value).get("customer")
        record = record._replace(extra=None if customer is None else customer.encode())
        answers = [
            answer for subscription in task.give(0, 0, record) for answer in task.give(1, 0, as_record(subscription))
        ]
    else:
        answers = task.give(1, 1, record)
    for answer in answers:
        for output in task.give(2, 0, as_record(answer)):
            yield (
                "out",
                plain(
                    output, lambda made: made.value and f"{JSON.deserialize(made.value)['total']}/{text(made.other)}"
                ),
            )


# ---- tables ----------------------------------------------------------------------------------------------------------


def words(task: Harness, topic: str, record: OperatorRecord) -> Rows:
    parts = [record._replace(value=word) for word in (record.value or b"").split(b" ")]
    for output in task.give_all(0, 0, parts):
        yield "out", plain(output, decode(JSON))


def append_or_reset(key: str, word: str, aggregate: list[str]) -> list[str] | None:
    return None if word == "reset" else [*aggregate, word]


WORDS = AggregateOperator("words", STRING, (STRING,), JSON, list, (append_or_reset,))


def versioned(task: Harness, topic: str, record: OperatorRecord) -> Rows:
    for update in task.give(0, 0, record):
        yield "out", plain(update, decode(STRING))
        if update.other != OUT_OF_ORDER:
            for part in regrouped(update, lambda value: (value[:1], value)):
                for output in task.give(1, 0, part):
                    yield "counts", plain(output, decode(LONG))


def rich(task: Harness, topic: str, record: OperatorRecord) -> Rows:
    def only_rich(data: bytes | None) -> bytes | None:
        return data if data is not None and int.from_bytes(data, "big") > 10 else None

    for update in task.give(0, 0, record):
        row = update._replace(value=only_rich(update.value), old=only_rich(update.old))
        for part in regrouped(row, lambda value: (b"rich", value)):
            for output in task.give(1, 0, part):
                yield "out", plain(output, decode(LONG))


def charts(task: Harness, topic: str, record: OperatorRecord) -> Rows:
    if topic == "songs":
        task.give(0, 1, record)
        return
    play = JSON.deserialize(record.value)
    if play["duration"] < 30_000:
        return
    for joined in task.give(0, 0, record._replace(key=play["song_id"].encode())):
        genre = JSON.deserialize(joined.other)["genre"].lower()
        song = f"{genre}/{text(joined.key)}".encode()
        for update in task.give(1, 0, as_record(joined, song)):
            for operator, key, to in ((2, genre.encode(), "charts-by-genre"), (3, b"all", "charts")):

                def chosen(plays: bytes, key: bytes = key, song: bytes = song) -> tuple[bytes, bytes | None]:
                    identity = song.decode().split("/")[1]
                    return key, JSON.serialize({"id": identity, "plays": LONG.deserialize(plays)})

                for part in regrouped(update, chosen):
                    for output in task.give(operator, 0, part):
                        yield to, plain(output, decode(JSON))


def with_song(key: str, song: dict[str, Any], top: list[dict[str, Any]]) -> list[dict[str, Any]]:
    others = without_song(key, song, top)
    return sorted([*others, song], key=lambda each: (-each["plays"], each["id"]))[:5]


def without_song(key: str, song: dict[str, Any], top: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in top if each["id"] != song["id"]]


def sums(key: str, value: int, aggregate: int) -> int | None:
    return aggregate + value or None


def statistics(key: str, value: int, aggregate: dict[str, Any]) -> dict[str, Any]:
    return {
        "count": aggregate["count"] + 1,
        "sum": aggregate["sum"] + value,
        "values": [*aggregate["values"], value],
    }


# ---- windows ---------------------------------------------------------------------------------------------------------


def window_count(
    windows: TimeWindows | SlidingWindows | UnlimitedWindows, retention: int | None = None, on_close: bool = False
) -> WindowAggregateOperator | SlidingWindowAggregateOperator:
    counts = ("counts", STRING, (STRING,), LONG, not_used, (not_used,))
    closing = (retention or windows.retention, on_close, True)
    if isinstance(windows, SlidingWindows):
        return SlidingWindowAggregateOperator(*counts, windows, *closing)
    return WindowAggregateOperator(*counts, windows, *closing)


def counted(
    windows: TimeWindows | SlidingWindows | UnlimitedWindows,
    retention: int | None = None,
    on_close: bool = False,
    **options: Any,
) -> Program:
    key = TimeWindowedSerde(STRING, windows.size)
    return one(window_count(windows, retention, on_close), decode(LONG), key, **options)


def session_count(windows: SessionWindows, retention: int | None = None, on_close: bool = False) -> Program:
    retention = retention or windows.retention
    fold = SessionAggregateOperator(
        "sessions", STRING, (STRING,), LONG, not_used, (not_used,), windows, retention, on_close, True
    )
    return one(fold, decode(LONG), SessionWindowedSerde(STRING))


def suppressed(windows: TimeWindows | SlidingWindows) -> Program:
    return then(
        window_count(windows), SuppressOperator("final", windows), decode(LONG), TimeWindowedSerde(STRING, windows.size)
    )


def both_counts(task: Harness, topic: str, record: OperatorRecord) -> Rows:
    for output in task.give(0, 0, record):
        yield "counts", plain(output, decode(LONG))
    for output in task.give(1, 0, record):
        yield "window-counts", plain(output, decode(LONG), TimeWindowedSerde(STRING, 100))


def without_ticks(task: Harness, topic: str, record: OperatorRecord) -> Rows:
    if record.value != b"tick":
        for output in task.give(0, 0, record):
            yield "out", plain(output, decode(LONG), TimeWindowedSerde(STRING, 100))


def by_value(task: Harness, topic: str, record: OperatorRecord) -> Rows:
    if record.value is not None:
        for output in task.give(0, 0, record._replace(key=record.value)):
            yield "out", plain(output, decode(LONG), TimeWindowedSerde(STRING, 100))


def trade_stats(ticker: str, trade: dict[str, Any], stats: dict[str, Any]) -> dict[str, Any]:
    low = trade["price"] if stats["min"] is None else min(stats["min"], trade["price"])
    return {"count": stats["count"] + 1, "sum": stats["sum"] + trade["price"], "min": low}


def with_average(output: Output) -> dict[str, Any]:
    stats: dict[str, Any] = JSON.deserialize(output.value)
    return {**stats, "avg": stats["sum"] / stats["count"]}


def largest(key: str, value: int, aggregate: int) -> int | None:
    return None if value < 0 else max(aggregate, value)


TRADES = TimeWindows.of_size_with_no_grace(5000).advance_by(1000)
TENS = TimeWindows.of_size_and_grace(100, 50)
SLIDING = SlidingWindows.of_time_difference_and_grace(100, 50)
VISITS = SessionWindows.of_inactivity_gap_and_grace(100, 1000)
SHORT = SessionWindows.of_inactivity_gap_and_grace(100, 50)


# ---- time ------------------------------------------------------------------------------------------------------------


def payload_time(task: Harness, topic: str, record: OperatorRecord) -> Rows:
    value = JSON.deserialize(record.value) or {}
    for output in task.give(0, 0, record._replace(timestamp=value.get("ts", NO_TIMESTAMP), extra=b"0")):
        yield "out", plain(output, decode(JSON))


CLOSE = JoinWindows.of_time_difference_with_no_grace(100)
PATIENT = JoinWindows.of_time_difference_and_grace(100, 150)

PROGRAMS: dict[str, Program] = {
    "basic-reduce": one(AggregateOperator("sums", STRING, (LONG,), LONG, None, (sums,)), decode(LONG)),
    "basic-aggregate": one(
        AggregateOperator("stats", STRING, (LONG,), JSON, lambda: {"count": 0, "sum": 0, "values": []}, (statistics,)),
        decode(JSON),
    ),
    "basic-group-by-key-count": one(CountOperator("counts"), decode(LONG)),
    "ktable-cache-off": Program([WORDS], words),
    "ktable-cache-on": Program([WORDS], words, {"cache": True}),
    "ktable-source": one(LatestValueOperator("rows"), decode(STRING)),
    "ktable-to-table": one(LatestValueOperator("rows"), decode(STRING)),
    "ktable-versioned-source": Program([LatestValueOperator("versions", 100), table_count("n", STRING)], versioned),
    "ktable-filter-then-count": Program([LatestValueOperator("rows"), table_count("n", LONG)], rich),
    "ktable-group-by-count": grouped_table(table_count("by-region", JSON), by_region),
    "ktable-group-by-aggregate": grouped_table(
        TableAggregateOperator(
            "ops",
            STRING,
            JSON,
            JSON,
            list,
            lambda key, row, operations: [*operations, f"+{row['amount']}"],
            lambda key, row, operations: [*operations, f"-{row['amount']}"],
        ),
        by_region,
    ),
    "ktable-group-by-reduce": grouped_table(
        TableAggregateOperator(
            "totals", STRING, LONG, LONG, None, lambda key, row, total: total + row, lambda key, row, total: total - row
        ),
        amount_by_region,
    ),
    "ktable-suppress-time-limit": then(
        LatestValueOperator("rows"), SuppressOperator("held", None, 100), decode(STRING)
    ),
    "ktable-suppress-max-records": then(
        LatestValueOperator("rows"), SuppressOperator("held", None, 1000, 2, None, True), decode(STRING)
    ),
    "examples-music-charts": Program(
        [
            StreamTableJoinOperator("songs", False),
            CountOperator("play-counts"),
            TableAggregateOperator("top5-by-genre", STRING, JSON, JSON, list, with_song, without_song),
            TableAggregateOperator("top5", STRING, JSON, JSON, list, with_song, without_song),
        ],
        charts,
    ),
    "joins-stream-global-inner": Program([StreamTableJoinOperator("join", False, by_extra=True)], country),
    "joins-stream-table-inner": lookup(StreamTableJoinOperator("join", False)),
    "joins-stream-table-left": lookup(StreamTableJoinOperator("join", True)),
    "joins-stream-table-rekeyed-inner": Program([StreamTableJoinOperator("join", False)], rekeyed),
    "joins-stream-table-versioned": lookup(StreamTableJoinOperator("join", True, history=100)),
    "joins-stream-table-grace": lookup(StreamTableJoinOperator("join", False, history=1000, grace=50)),
    "joins-stream-stream-inner": stream_join(CLOSE),
    "joins-stream-stream-inner-grace": stream_join(PATIENT),
    "joins-stream-stream-inner-retention": stream_join(JoinWindows.of_time_difference_and_grace(100, 50)),
    "joins-stream-stream-asymmetric": stream_join(CLOSE.before(20)),
    "joins-stream-stream-left": stream_join(CLOSE, (True, False)),
    "joins-stream-stream-left-throttled": stream_join(CLOSE, (True, False), emit_interval=1000),
    "joins-stream-stream-outer-grace": stream_join(PATIENT, (True, True)),
    "joins-stream-stream-outer-asymmetric": stream_join(CLOSE.before(20), (True, True)),
    "joins-table-table-inner": table_join((False, False)),
    "joins-table-table-not-materialized": table_join((False, False)),
    "joins-table-table-outer": table_join((True, True)),
    "joins-table-table-foreign-key": Program(
        [
            SubscriptionSendOperator("register", "orders"),
            SubscriptionJoinOperator("answer", False),
            ResponseJoinOperator("resolve", "orders", False),
        ],
        foreign_key,
    ),
    "windows-tumbling-count": counted(TimeWindows.of_size_with_no_grace(100)),
    "windows-unlimited-count": counted(UnlimitedWindows.of().start_on(1000)),
    "windows-group-by-count": Program([window_count(TimeWindows.of_size_with_no_grace(100))], by_value),
    "windows-hopping-count": counted(TimeWindows.of_size_and_grace(100, 20).advance_by(40), 1000),
    "windows-hopping-trade-stats": one(
        WindowAggregateOperator(
            "trade-stats",
            STRING,
            (JSON,),
            JSON,
            lambda: {"count": 0, "sum": 0.0, "min": None},
            (trade_stats,),
            TRADES,
            3_600_000,
        ),
        with_average,
        TimeWindowedSerde(STRING, 5000),
        "stats",
    ),
    "windows-tumbling-reduce": one(
        WindowAggregateOperator(
            "max", STRING, (LONG,), LONG, None, (largest,), TimeWindows.of_size_and_grace(100, 1000), 1100
        ),
        decode(LONG),
        TimeWindowedSerde(STRING, 100),
    ),
    "windows-tumbling-suppress": suppressed(TENS),
    "windows-tumbling-emit-on-close": counted(TENS, 2000, True),
    "windows-tumbling-emit-on-close-default-retention": counted(TENS, None, True),
    "windows-tumbling-emit-on-close-throttled": counted(
        TimeWindows.of_size_with_no_grace(100), 5000, True, emit_interval=1000
    ),
    "windows-sliding-count": counted(SlidingWindows.of_time_difference_with_no_grace(100), 10_000),
    "windows-sliding-emit-on-close": counted(SLIDING, 5000, True),
    "windows-sliding-suppress": suppressed(SLIDING),
    "windows-session-count": session_count(VISITS),
    "windows-session-aggregate": one(
        SessionAggregateOperator(
            "visits",
            STRING,
            (STRING,),
            JSON,
            list,
            (lambda key, value, visits: [*visits, value],),
            VISITS,
            VISITS.retention,
            merger=lambda key, first, second: [*first, *second],
        ),
        decode(JSON),
        SessionWindowedSerde(STRING),
    ),
    "windows-session-emit-on-close": session_count(SHORT, 5000, True),
    "windows-session-emit-on-close-default-retention": session_count(SHORT, None, True),
    "time-filter-before-window": Program([window_count(TimeWindows.of_size_with_no_grace(100))], without_ticks),
    "time-out-of-order-count": Program(
        [CountOperator("all"), window_count(TimeWindows.of_size_and_grace(100, 100), 1000)], both_counts
    ),
    "time-payload-extractor": Program([PartitionTimeOperator("source", "partition time", "skip")], payload_time),
    "time-log-and-skip": one(PartitionTimeOperator("source", "skip"), decode(STRING)),
}
