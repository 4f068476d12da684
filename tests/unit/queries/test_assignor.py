"""How instances share tasks."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from streamskit.queries.group.assignment import Assignment, SubscriptionInfo, latest_of_each_server
from streamskit.queries.group.assignor import ClientState, TaskAssignment, assign_tasks

TASKS = [f"{group}_{partition}" for group in range(2) for partition in range(4)]


def member(name: str, ready: object = (), active: object = (), standbys: int = 0, **positions: int) -> ClientState:
    known = {task.lstrip("t"): position for task, position in positions.items()}
    return ClientState(name, f"127.0.0.1:{ord(name[0])}", frozenset(ready), frozenset(active), known, standbys)  # type: ignore[call-overload]


def after(shares: TaskAssignment, members: list[ClientState]) -> list[ClientState]:
    """Return the members as they are when all have caught up with what they got."""
    found = []
    for each in members:
        roles = shares.roles(each.id)
        active = [task for task, role in roles.items() if role == "active"]
        found.append(ClientState(each.id, each.server, frozenset(roles), frozenset(active), {}, each.standbys))
    return found


def settled(tasks: list[str], members: list[ClientState]) -> TaskAssignment:
    """Share until nothing moves any more."""
    shares = assign_tasks(tasks, members)
    for _ in range(10):
        members = after(shares, members)
        if (again := assign_tasks(tasks, members)) == shares:
            return shares
        shares = again
    raise AssertionError("the shares never settle")


def test_one_instance_gets_everything() -> None:
    assert set(assign_tasks(TASKS, [member("a")]).active.values()) == {"a"}


def test_nobody_gets_anything_when_there_is_nobody() -> None:
    assert assign_tasks(TASKS, []) == TaskAssignment()


def test_the_partitions_of_each_sub_topology_are_spread_evenly() -> None:
    shares = assign_tasks(TASKS, [member("a"), member("b")])
    assert Counter((owner, task[0]) for task, owner in shares.active.items()) == {
        ("a", "0"): 2, ("a", "1"): 2, ("b", "0"): 2, ("b", "1"): 2,
    }  # fmt: skip


def test_a_task_stays_where_it_is_until_the_newcomer_has_caught_up() -> None:
    old, new = member("a", TASKS, TASKS), member("b")
    first = assign_tasks(TASKS, [old, new])
    assert set(first.active.values()) == {"a"}
    assert len(first.warmup) == 4
    assert set(first.warmup.values()) == {("b",)}
    caught_up = assign_tasks(TASKS, after(first, [old, new]))
    assert Counter(caught_up.active.values()) == {"a": 4, "b": 4}
    assert caught_up.warmup == {}


def test_what_a_dead_instance_had_goes_to_a_standby_that_has_it() -> None:
    members = [member(name, standbys=1) for name in "abc"]
    shares = settled(TASKS, members)
    dead, *rest = after(shares, members)
    mine = {task for task, owner in shares.active.items() if owner == dead.id}
    without = assign_tasks(TASKS, rest)
    assert all(without.active[task] in shares.standby[task] for task in mine)


def test_a_task_with_no_copy_anywhere_goes_to_the_one_with_most_of_it_on_its_disk() -> None:
    shares = assign_tasks(["0_0", "0_1"], [member("a", t0_1=10), member("b", t0_0=5, t0_1=3)])
    assert shares.active == {"0_0": "b", "0_1": "a"}


def test_a_standby_is_never_where_the_active_one_is_and_no_more_are_asked_than_there_are_instances() -> None:
    shares = assign_tasks(TASKS, [member("a", standbys=5), member("b", standbys=5)])
    assert all(shares.standby[task] == (("b",) if owner == "a" else ("a",)) for task, owner in shares.active.items())


names = st.lists(st.sampled_from("abcdefg"), min_size=1, unique=True)
some_tasks = st.sets(st.sampled_from(TASKS))


@given(names, st.data())
def test_every_task_has_one_owner_who_is_ready_if_anybody_is(members: list[str], data: st.DataObject) -> None:
    everybody = [member(name, data.draw(some_tasks), (), data.draw(st.integers(0, 2))) for name in members]
    shares = assign_tasks(TASKS, everybody)
    assert sorted(shares.active) == sorted(TASKS)
    ready = {each.id: each.ready for each in everybody}
    for task, owner in shares.active.items():
        assert task in ready[owner] or not any(task in tasks for tasks in ready.values())
        assert owner not in shares.standby.get(task, ()) + shares.warmup.get(task, ())
        assert len(set(shares.standby.get(task, ()))) == len(shares.standby.get(task, ()))


@given(names, names, st.integers(0, 2))
def test_whoever_comes_or_goes_the_shares_settle_evenly_and_move_no_more_than_they_must(
    before: list[str], now: list[str], standbys: int
) -> None:
    members = [member(name, standbys=standbys) for name in before]
    first = settled(TASKS, members)
    stayed = {each.id: each for each in after(first, members)}
    shares = settled(TASKS, [stayed.get(name, member(name, standbys=standbys)) for name in now])
    loads = Counter(shares.active.values())
    assert max(loads.values()) - min(loads[name] for name in now) <= 1
    kept = sum(shares.active[task] == owner for task, owner in first.active.items())
    stay = set(before) & set(now)
    most = -(-len(TASKS) // len(now))
    had = Counter(first.active.values())
    if not standbys:  # with standbys a task may rather go where a replica is
        assert kept >= sum(min(had[name], most - 1 if len(TASKS) % len(now) else most) for name in stay)


def test_reports_and_agreements_travel_as_they_are() -> None:
    report = SubscriptionInfo(member("a", ["0_1"], ["0_1"], 1, t0_1=7), 12.5)
    assert SubscriptionInfo.from_bytes(report.to_bytes()) == report
    agreement = Assignment({"a": "127.0.0.1:1"}, TaskAssignment({"0_1": "a"}, {"0_1": ("b",)}, {"0_0": ("a",)}))
    assert Assignment.from_bytes(agreement.to_bytes()) == agreement


@given(st.binary())
def test_what_others_say_in_the_group_is_no_report(data: bytes) -> None:
    assert SubscriptionInfo.from_bytes(data) is None
    assert Assignment.from_bytes(data) is None


def test_an_instance_that_another_has_replaced_at_its_address_counts_no_more() -> None:
    old, new = SubscriptionInfo(ClientState("old", "here"), 1.0), SubscriptionInfo(ClientState("new", "here"), 2.0)
    other = SubscriptionInfo(ClientState("other", "there"), 1.5)
    assert {each.member.id for each in latest_of_each_server([new, old, other])} == {"new", "other"}
