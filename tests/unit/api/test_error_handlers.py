"""Handlers on their own: what they may be given, what they decide, and what a dead letter is made of."""

import pickle
from typing import Any

import pytest

from streamskit import DeadLetter, ErrorHandlerContext, LogAndContinue, LogAndFail, Response, StreamsError
from streamskit.api.error_handlers import (
    LEFT_OUT,
    LONGEST_MESSAGE,
    LONGEST_TRACE,
    OVERHEAD,
    Handlers,
    RawRecord,
    StepError,
    ask,
    asks,
    dead_letter,
    fails,
    fitting,
)
from streamskit.common.errors import TopologyError

CONTEXT = ErrorHandlerContext("a-node", "in", 2, 7, 1000, (("trace", b"t1"),), b"k", b"v")
RECORD = RawRecord("in", b"k", b"v", 1000)


def test_a_handler_that_was_not_given_fails() -> None:
    handlers = Handlers.of(None, LogAndContinue(), None)
    assert (handlers.deserialization, handlers.processing, handlers.production) == (
        LogAndFail(), LogAndContinue(), LogAndFail(),
    )  # fmt: skip
    assert [fails(handler) for handler in (handlers.deserialization, handlers.processing)] == [True, False]
    assert handlers.that_continue == [LogAndContinue()]


@pytest.mark.parametrize("handler", [LogAndContinue, "continue", 5, Response.resume()], ids=str)
def test_what_is_no_handler_is_refused_with_a_sentence(handler: Any) -> None:
    with pytest.raises(TopologyError, match=r"^production_handler is .*; give LogAndContinue\(\), LogAndFail"):
        Handlers.of(None, None, handler)


class Choosing(LogAndContinue):
    """A handler of a user's own, made as one makes it in Java."""

    def __call__(self, context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
        return Response.fail() if isinstance(exception, KeyError) else super().__call__(context, record, exception)


class Telling(LogAndContinue):
    """A handler that goes on as the one that it extends."""


def test_a_handler_that_extends_one_and_decides_by_itself_is_asked() -> None:
    handlers = Handlers.of(Choosing("letters"), Telling("more-letters"), None)
    assert [asks(handler) for handler in handlers.every] == [True, False, False]
    assert ask(handlers.deserialization, CONTEXT, RECORD, KeyError("no")).fails
    (letter,) = ask(handlers.deserialization, CONTEXT, RECORD, ValueError("no")).dead_letters
    assert letter.topic == "letters"
    assert handlers.dead_letter_topics == ["more-letters"]


def test_to_fail_is_what_log_and_fail_decides() -> None:
    assert ask(LogAndFail(), CONTEXT, RECORD, ValueError("no")).fails


def test_log_and_continue_goes_on_without_a_trace_if_it_has_no_topic() -> None:
    assert ask(LogAndContinue(), CONTEXT, RECORD, ValueError("no")) == Response.resume()


def test_a_dead_letter_is_the_source_record_with_headers_that_say_where_it_was_and_what_was_wrong() -> None:
    (letter,) = ask(LogAndContinue("letters"), CONTEXT, RECORD, ValueError("no number")).dead_letters
    assert letter == DeadLetter(
        "letters",
        b"k",
        b"v",
        (
            ("trace", b"t1"),
            ("__streams.errors.exception", b"ValueError"),
            ("__streams.errors.message", b"no number"),
            ("__streams.errors.stacktrace", b"ValueError: no number"),
            ("__streams.errors.topic", b"in"),
            ("__streams.errors.partition", b"2"),
            ("__streams.errors.offset", b"7"),
        ),
        1000,
    )


def test_a_message_that_quotes_a_whole_record_is_cut() -> None:
    (letter,) = ask(LogAndContinue("letters"), CONTEXT, RECORD, ValueError("x" * 10_000)).dead_letters
    assert len(dict(letter.headers)["__streams.errors.message"]) == LONGEST_MESSAGE


def test_a_handler_that_fails_itself_is_told_of_together_with_what_it_was_asked() -> None:
    def careless(context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
        raise KeyError("retries")

    with pytest.raises(StreamsError) as failed:
        ask(careless, CONTEXT, RECORD, ValueError("no number"))
    assert str(failed.value) == (
        "the error handler itself raised KeyError: 'retries'. It was asked about: ValueError: no number"
    )


def test_a_handler_that_fails_without_a_word_is_told_of_by_the_kind_of_its_error() -> None:
    def unwritten(context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
        raise NotImplementedError

    with pytest.raises(StreamsError, match=r"itself raised NotImplementedError\. It was asked about:"):
        ask(unwritten, CONTEXT, RECORD, ValueError("no number"))


@pytest.mark.parametrize("answer", [None, True, Response, "resume"], ids=str)
def test_a_handler_that_decides_nothing_is_told_what_it_may_return(answer: Any) -> None:
    with pytest.raises(StreamsError, match=r"^the error handler returned .*, and has to return Response.resume\(\), "):
        ask(lambda context, record, exception: answer, CONTEXT, RECORD, ValueError("no"))


def test_a_response_with_something_else_than_dead_letters_is_none() -> None:
    careless: Any = lambda context, record, exception: Response.resume("letters")  # type: ignore[arg-type]  # noqa: E731
    with pytest.raises(StreamsError, match=r"has to return .*Response.resume\(DeadLetter\(...\)\)"):
        ask(careless, CONTEXT, RECORD, ValueError("no"))


@pytest.mark.parametrize(
    ("topic", "value", "headers", "said"),
    [
        ("letters", "text", (), "made of bytes, and 'text' is none: write text.encode()"),
        ("letters", None, (("why", "text"),), "made of bytes, and 'text' is none"),
        (None, b"", (), "goes to a topic, by its name, and not to None"),
        ("", b"", (), "goes to a topic, by its name, and not to ''"),
    ],
)
def test_what_cannot_be_written_is_no_dead_letter(topic: Any, value: Any, headers: Any, said: str) -> None:
    with pytest.raises(StreamsError) as failed:
        DeadLetter(topic, None, value, headers)
    assert said in str(failed.value)


def test_a_dead_letter_that_fits_stays_as_it_is() -> None:
    letter = DeadLetter("letters", b"k" * 10, b"v" * 80, (("why", b"a" * 7),))
    assert fitting(letter, 100) == letter
    assert fitting(letter, 99) != letter


def test_a_value_that_is_too_large_is_left_out_and_a_header_says_how_large_it_was() -> None:
    letter = fitting(DeadLetter("letters", b"k", b"v" * 2_000_000, (("why", b"so"),), 5), 1_000_000)
    assert letter == DeadLetter("letters", b"k", None, (("why", b"so"), (LEFT_OUT, b"2000000 bytes")), 5)


def test_the_largest_record_leaves_room_for_the_rest_of_a_request() -> None:
    assert Handlers.of(None, None, None, 5_000).largest_record == 5_000 - OVERHEAD


def test_the_topics_of_dead_letters_are_known_before_there_are_any() -> None:
    handlers = Handlers.of(LogAndContinue("a"), LogAndContinue("b"), LogAndContinue("a"))
    assert handlers.dead_letter_topics == ["a", "b"]


class OvenError(Exception):
    """An exception of a module's own."""


def test_a_stack_trace_says_where_an_exception_was_raised_and_not_what_streamskit_noted() -> None:
    try:
        raise OvenError("oh")
    except OvenError as raised:
        failure = raised
    failure.add_note("the oven was cold")
    failure.add_note("streamskit operator failed: {}")
    headers = dict(dead_letter("letters", CONTEXT, failure).headers)
    assert headers["__streams.errors.exception"] == f"{__name__}.OvenError".encode()
    trace = headers["__streams.errors.stacktrace"].decode()
    assert 'raise OvenError("oh")' in trace
    assert trace.endswith("OvenError: oh\nthe oven was cold")


def test_of_a_long_stack_trace_the_end_is_kept() -> None:
    headers = dict(dead_letter("letters", CONTEXT, ValueError("x" * 10_000 + "end")).headers)
    trace = headers["__streams.errors.stacktrace"].decode()
    assert len(trace) == LONGEST_TRACE
    assert trace.endswith("xend")


@pytest.mark.parametrize(
    ("said", "name", "message"),
    [
        ("SparkArithmeticException: [BY_ZERO] no", "org.apache.spark.SparkArithmeticException", "[BY_ZERO] no"),
        ("RecordTooLargeException: big", "org.apache.kafka.common.errors.RecordTooLargeException", "big"),
        ("json.decoder.JSONDecodeError: no", "json.decoder.JSONDecodeError", "no"),
        ("the key: no number", "org.apache.kafka.common.errors.SerializationException", "the key: no number"),
    ],
)  # fmt: skip
def test_of_what_was_raised_within_spark_a_dead_letter_has_the_qualified_name_and_the_step(
    said: str, name: str, message: str
) -> None:
    error = pickle.loads(pickle.dumps(StepError(said, "share (written at In[3] line 2)")))
    headers = {key: value.decode() for key, value in dead_letter("letters", CONTEXT, error).headers}
    assert headers["__streams.errors.exception"] == name
    assert headers["__streams.errors.message"] == message
    assert headers["__streams.errors.stacktrace"] == f"{name}: {message}\n\tat share (written at In[3] line 2)"
