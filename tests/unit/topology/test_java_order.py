import re

from hypothesis import given
from hypothesis import strategies as st

from streamskit.topology.java_order import PriorityQueue, TreeSet, hash_order


def test_texts_come_in_the_order_of_a_java_hash_set() -> None:
    assert hash_order(["in1", "in2"]) == ["in2", "in1"]
    assert hash_order(["enrich-Buffer", "versions"]) == ["versions", "enrich-Buffer"]


def test_more_texts_than_three_quarters_of_the_buckets_get_twice_as_many() -> None:
    letters = dict.fromkeys(re.findall(r"\w+", "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu"))
    assert " ".join(hash_order(letters)) == "zeta iota nu delta mu theta epsilon lambda eta alpha kappa beta gamma"


def test_texts_in_one_bucket_stay_in_the_order_they_were_added() -> None:
    assert hash_order(["AaAa", "BBBB", "AaBB", "BBAa"]) == ["AaAa", "BBBB", "AaBB", "BBAa"]


@given(st.lists(st.text()))
def test_every_text_comes_once(texts: list[str]) -> None:
    assert sorted(hash_order(texts)) == sorted(set(texts))


@given(st.lists(st.integers()))
def test_a_tree_set_is_sorted_as_long_as_its_order_stands_still(numbers: list[int]) -> None:
    tree: TreeSet[int] = TreeSet(lambda number: (number, ""))
    for number in numbers:
        tree.add(number)
    assert list(tree) == sorted(set(numbers))


def test_an_element_stays_where_it_was_put_when_the_order_changes() -> None:
    size = {"a": 2, "b": 1}
    tree: TreeSet[str] = TreeSet(lambda name: (-size[name], name))
    tree.add("a")
    tree.add("b")
    size["b"] = 3
    assert list(tree) == ["a", "b"]


def numbers(count: int, seed: int = 7) -> list[int]:
    """Return numbers that look like chance, and that Java makes as easily."""
    found = []
    for _ in range(count):
        seed = (seed * 31 + 17) % 101
        found.append(seed)
    return found


def test_a_new_element_meets_those_that_it_meets_in_javas_tree() -> None:
    size: dict[str, int] = {}
    tree: TreeSet[str] = TreeSet(lambda name: (-size[name], name))
    for place, number in enumerate(numbers(24)):
        name = chr(97 + place * 7 % 24)
        size[name] = 1
        tree.add(name)
        size[chr(97 + number % (place + 1) * 7 % 24)] += number % 5
    assert "".join(tree) == "abehficjldgkmnovpqstruwx"


def test_elements_of_one_priority_come_out_as_of_javas_queue() -> None:
    queue: PriorityQueue[str] = PriorityQueue(len)
    taken = []
    for place, number in enumerate(numbers(54)[24:]):
        queue.offer(chr(97 + place % 26) * (1 + number % 3))
        if number % 4 == 0:
            taken.append(queue.poll())
    taken += [queue.poll() for _ in range(len(queue))]
    assert " ".join(taken) == ("aa cc d f h gg nn p q s u v w c oo zz bb xx dd tt ii ee jj bbb lll rrr mmm yyy kkk aaa")
