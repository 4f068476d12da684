"""Names of one's own on a broker that many share."""

import pytest

from streamskit.common.names import own_name, own_prefix, plain_name


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
    monkeypatch.setenv("JUPYTERHUB_USER", "ann@school")
    assert own_name("trades") == "ann-school-trades"


def test_an_empty_prefix_turns_it_off_on_a_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "ann")
    monkeypatch.setenv("STREAMSKIT_PREFIX", "")
    assert own_name("trades") == "trades"


def test_topics_of_kafkas_own_have_no_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSKIT_PREFIX", "ann")
    assert own_name("__consumer_offsets") == "__consumer_offsets"
