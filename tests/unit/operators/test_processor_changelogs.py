"""What the stores of processors write to their changelogs: Kafka Streams' bytes, folded by a micro-batch or not."""

from streamskit import Processor, ProcessorContext, Record, Stores, ValueAndTimestamp, Windowed
from tests.unit.operators.processor_harness import LONG, STRING, OneStore, Task, key_value
from tests.unit.operators.test_processor_routing import Write


def test_with_caching_a_micro_batch_writes_the_last_value_of_each_key() -> None:
    rows = OneStore(key_value())
    rows.call(lambda store: store.put_all([("a", "1"), ("b", "1"), ("a", "2"), ("b", None)]), timestamp=5)
    assert rows.log == [(b"a", b"2", 5), (b"b", None, 5)]


def test_without_caching_every_update_is_written() -> None:
    rows = OneStore(key_value().with_caching(False))
    rows.call(lambda store: store.put_all([("a", "1"), ("a", "2")]), timestamp=5)
    rows.call(lambda store: store.delete("a"), timestamp=6)
    assert rows.log == [(b"a", b"1", 5), (b"a", b"2", 5), (b"a", None, 6)]


def test_without_logging_nothing_is_written_and_the_rows_are_kept() -> None:
    rows = OneStore(key_value().with_logging(False))
    rows.call(lambda store: store.put("a", "1"))
    assert rows.log == []
    assert rows.call(lambda store: store.get("a")) == "1"


def test_put_if_absent_writes_only_what_it_has_put() -> None:
    rows = OneStore(key_value())
    rows.call(lambda store: store.put_if_absent("a", "1"))
    rows.call(lambda store: store.put_if_absent("a", "2"))
    assert rows.log == [(b"a", b"1", 0)]


def test_a_timestamped_value_is_written_with_its_own_time() -> None:
    timed = OneStore(Stores.in_memory_timestamped_key_value_store("timed", STRING, STRING))
    timed.call(lambda store: store.put("a", ValueAndTimestamp("1", 7)), timestamp=5)
    timed.call(lambda store: store.put("a", None), timestamp=9)
    assert timed.log == [(b"a", b"1", 7), (b"a", None, 9)]


def test_a_window_is_written_under_key_start_and_four_zeros() -> None:
    windows = OneStore(Stores.persistent_window_store("windows", 100, 10, STRING, LONG))
    windows.call(lambda store: store.put("a", 1, 258), timestamp=5)
    assert windows.log == [(b"a" + bytes([0, 0, 0, 0, 0, 0, 1, 2]) + bytes(4), (1).to_bytes(8, "big"), 5)]


def test_a_session_is_written_under_key_end_and_start() -> None:
    sessions = OneStore(Stores.persistent_session_store("sessions", 1_000, STRING, LONG))
    sessions.call(lambda store: store.put(Windowed("a", 1, 2), 3))
    sessions.call(lambda store: store.remove(Windowed("a", 1, 2)))
    key = b"a" + (2).to_bytes(8, "big") + (1).to_bytes(8, "big")
    assert sessions.log == [(key, (3).to_bytes(8, "big"), 0), (key, None, 0)]


def test_several_stores_and_ways_out_are_told_apart() -> None:
    class Both(Processor):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.stores = [context.state_store(name) for name in ("one", "two")]

        def process(self, record: Record) -> None:
            for number, store in enumerate(self.stores):
                store.put(record.key, f"{record.value}{number}")
            self.context.forward(record)

    task = Task(Both, stores=[key_value("one"), key_value("two")], ways=["left", "right"])
    assert task.run(("k", "v", 1)) == [
        ("left", "k", "v", 1),
        ("right", "k", "v", 1),
        ("one", b"k", b"v0", 1),
        ("two", b"k", b"v1", 1),
    ]


def test_updates_stand_in_the_order_of_the_records_where_nothing_is_folded() -> None:
    task = Task(lambda: Write("rows"), stores=[key_value().with_caching(False)])
    assert [made[0] for made in task.run(("a", "1", 1), ("b", "2", 2))] == ["rows", "out", "rows", "out"]


def test_what_init_puts_into_a_store_has_a_time_that_a_topic_takes() -> None:
    class Prepared(Write):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.store.put("ready", "yes")

    task = Task(lambda: Prepared("rows"), stores=[key_value().with_caching(False)], ways=())
    assert task.run(("k", "v", 5)) == [("rows", b"ready", b"yes", 0), ("rows", b"k", b"v", 5)]
