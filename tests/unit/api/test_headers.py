"""The headers and times of records are checked where a program gives them."""

from typing import Any

import pytest

from streamskit import Record, StreamsError
from streamskit.api.error_handlers import DeadLetter
from streamskit.api.processor import FixedKeyRecord


@pytest.mark.parametrize("given", [[("a", b"1"), ["a", None]], (["a", b"1"], ("a", None))])
def test_pairs_of_any_kind_become_tuples_and_a_value_may_be_none(given: Any) -> None:
    headers: Any = (("a", b"1"), ("a", None))
    assert Record("k", "v", 0, given).headers == headers
    assert Record("k", "v", 0).with_headers(given).headers == headers
    assert FixedKeyRecord("k", "v", 0).with_headers(given).headers == headers


@pytest.mark.parametrize("given", [None, (), []])
def test_no_headers_are_an_empty_tuple(given: Any) -> None:
    assert Record("k", "v", 0, given).headers == ()


@pytest.mark.parametrize("given", [{"a": b"1"}, "ab", [("a",)], [b"ab"], 5])
def test_what_is_no_list_of_pairs_is_refused(given: Any) -> None:
    with pytest.raises(
        StreamsError, match=r"The headers of a record are pairs of a name and bytes, such as .*, and not"
    ):
        Record("k", "v", 0).with_headers(given)


@pytest.mark.parametrize("pair", [("a", "text"), ("a", 5), (b"a", b"1"), (None, b"1")])
def test_a_name_is_text_and_a_value_bytes_or_none(pair: Any) -> None:
    with pytest.raises(
        StreamsError, match=r"A record cannot have the header .* For a value of text, write text\.encode"
    ):
        Record("k", "v", 0, (pair,))


def test_the_headers_of_a_dead_letter_are_pairs_with_names_of_text() -> None:
    given: Any = [("why", None)]
    assert DeadLetter("letters", b"k", None, given).headers == tuple(given)
    with pytest.raises(StreamsError, match="cannot have the header b'why'"):
        DeadLetter("letters", b"k", None, ((b"why", b"so"),))  # type: ignore[arg-type]


@pytest.mark.parametrize("time", [True, 2**63, -1, 1.0, None, "5"])
def test_a_time_is_an_int_of_eight_bytes_that_is_not_negative(time: Any) -> None:
    with pytest.raises(StreamsError, match=r"A record cannot have the timestamp .*; give it whole milliseconds"):
        Record("k", "v", time)
    with pytest.raises(StreamsError, match="cannot have the timestamp"):
        FixedKeyRecord("k", "v", 0).with_timestamp(time)
