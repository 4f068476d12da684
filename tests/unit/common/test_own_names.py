"""Names of one's own on a broker that many share."""

from itertools import permutations

import pytest

from streamskit.common.names import is_topic_name, own_name, own_prefix, plain_name


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMSKIT_PREFIX", raising=False)
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)


def test_without_a_prefix_names_stay_as_they_are() -> None:
    assert (own_prefix(), own_name("trades"), plain_name("trades")) == ("", "trades", "trades")


def test_a_prefix_is_added_once_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSKIT_PREFIX", "ann")
    assert own_name("trades") == own_name(own_name("trades")) == "ann-trades"
    assert plain_name("ann-trades") == plain_name("trades") == "trades"


def test_a_prefix_that_ends_in_a_sign_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSKIT_PREFIX", "room7.")
    assert own_name("trades") == "room7.trades"


def test_on_a_hub_it_is_the_users_name_with_what_kafka_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "ann.b@school")
    assert own_name("trades") == "ann.b_40school-trades"
    assert plain_name("ann.b_40school-trades") == "trades"


def test_no_users_prefix_on_a_hub_is_anothers_or_begins_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    users = [
        "ann",
        "ann-marie",
        "ann.",
        "ann_",
        "ann.b",
        "ann_b",
        "ann-b",
        "ann/b",
        "ann b",
        "ann_2fb",
        "ann.2fb",
        "Ümit",
    ]
    users += [
        "Ämit",
        "-mit",
        "_mit",
        "__mit",
        "ann@school",
        "ann-2dmarie",
        "ann_2dmarie",
        "ann.2dmarie",
        "\udce4",
        ".c3",
    ]
    prefixes = []
    for user in users:
        monkeypatch.setenv("JUPYTERHUB_USER", user)
        prefixes.append(own_prefix())
    assert all(is_topic_name(prefix) and not prefix.startswith("__") for prefix in prefixes)
    # Kafka takes no two topics whose names differ in nothing but dots and underscores.
    told = [prefix.replace(".", "_") for prefix in prefixes]
    assert [(a, b) for a, b in permutations(told, 2) if b.startswith(a)] == []


def test_names_that_kafka_does_not_take_stay_apart_where_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSKIT_PREFIX", "room-7_Ümit")
    assert own_name("trades") == "room-7__c3_9cmit-trades"


def test_an_empty_prefix_turns_it_off_on_a_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "ann")
    monkeypatch.setenv("STREAMSKIT_PREFIX", "")
    assert own_name("trades") == "trades"


def test_topics_of_kafkas_own_have_no_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSKIT_PREFIX", "ann")
    assert own_name("__consumer_offsets") == "__consumer_offsets"
