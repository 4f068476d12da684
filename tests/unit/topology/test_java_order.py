import re

from hypothesis import given
from hypothesis import strategies as st

from streamskit.topology.java_order import TreeSet, hash_order


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
