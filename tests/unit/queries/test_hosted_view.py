"""The part of a store that an instance hosts: what is here, and never an answer for what is elsewhere."""

from inspect import getattr_static

import pytest

from streamskit.common.errors import InvalidStateStorePartitionError
from streamskit.queries.hosted_view import HostedView
from streamskit.queries.metadata import HostInfo, Hosts
from streamskit.state.stores import ValueAndTimestamp
from streamskit.views.store_snapshot import SnapshotSource
from tests.unit.queries.rest_harness import TIME, FakeInstance, Group, long, partition_of, windowed

HERE, THERE = HostInfo("127.0.0.1", 1), HostInfo("127.0.0.1", 2)
OURS, ANOTHERS = "d", "b"
"""A key in partition 0, and one in partition 2."""


@pytest.fixture
def instance() -> FakeInstance:
    """One that has partitions 0 and 1 of 4."""
    group = Group()
    here, there = FakeInstance(group, HERE), FakeInstance(group, THERE)
    here.roles, there.roles = {0: "active", 1: "active"}, {2: "active", 3: "active"}
    group.members += [here, there]
    group.hosts = {number: Hosts(HERE if number < 2 else THERE) for number in range(4)}
    assert (partition_of(OURS.encode()), partition_of(ANOTHERS.encode())) == (0, 2)
    for key in (OURS, ANOTHERS):
        group.put("counts", key.encode(), long(5))
        group.put("minutes", windowed(key, TIME), long(3))
    return here


def test_a_key_of_another_instance_is_no_missing_key_with_timestamps_either(instance: FakeInstance) -> None:
    counts, minutes = HostedView(instance, "counts"), HostedView(instance, "minutes")
    assert counts.get(OURS) == 5
    assert counts.with_timestamps().get(OURS) == ValueAndTimestamp(5, TIME)
    assert minutes.with_timestamps().fetch(OURS, TIME, TIME) == [(TIME, ValueAndTimestamp(3, TIME))]
    for view in (counts, counts.with_timestamps()):
        with pytest.raises(InvalidStateStorePartitionError, match="is in partition 2, which is not at 127"):
            view.get(ANOTHERS)
    with pytest.raises(InvalidStateStorePartitionError, match="is in partition 2, which is not at 127"):
        minutes.with_timestamps().fetch(ANOTHERS, TIME, TIME)


def test_the_versions_of_a_key_of_another_instance_are_no_empty_list(instance: FakeInstance) -> None:
    instance.group.put("prices", OURS.encode(), b"\x3f\xf0" + bytes(6), 1000)
    prices = HostedView(instance, "prices")
    assert prices.versions(OURS) == prices.with_timestamps().backward_versions(OURS, 0) == [(1.0, 1000, None)]
    for ask in (prices.versions, prices.backward_versions, prices.with_timestamps().versions):
        with pytest.raises(InvalidStateStorePartitionError, match="is in partition 2, which is not at 127"):
            ask(ANOTHERS)


def test_a_view_with_timestamps_looks_at_each_question_what_the_instance_has(instance: FakeInstance) -> None:
    view = HostedView(instance, "counts")
    timed = view.with_timestamps()
    instance.group.put("counts", OURS.encode(), long(6), TIME + 1)
    assert timed.all() == [(OURS, (6, TIME + 1))]
    assert (timed.updates, view.get(OURS)) == (2, 6)
    del instance.roles[0]  # another instance takes it over
    assert timed.all() == []
    with pytest.raises(InvalidStateStorePartitionError, match="is in partition 0, which is not at"):
        timed.get(OURS)


def test_a_view_can_be_made_of_a_hosted_store_also_where_python_looks_for_attributes_that_are_written_down(
    instance: FakeInstance,
) -> None:
    counts = HostedView(instance, "counts")
    assert isinstance(counts, SnapshotSource)
    for name in ("name", "kind", "all"):  # as isinstance() does since Python 3.12, which asks no __getattr__
        getattr_static(counts, name)
    assert (counts.name, counts.kind, counts.all()) == ("counts", "key-value", [(OURS, 5)])
