"""Wrong answers that are typical for error handling: each is told what is misunderstood."""

from typing import Any

import pytest

from streamskit import DeadLetter, LogAndContinue, Response
from tests.labs.wrong_answers import misconception

pytestmark = pytest.mark.spark


def decide(context: Any, record: Any, exception: Exception) -> Response:
    """The right handler; the others below do something else in one place."""
    if "DIVIDE_BY_ZERO" in str(exception):
        return Response.resume()
    if "CAST_INVALID_INPUT" in str(exception):
        return Response.resume(DeadLetter("dead-bills", context.source_raw_key, context.source_raw_value))
    return Response.fail()


def by_class(context: Any, record: Any, exception: Exception) -> Response:
    if isinstance(exception, ZeroDivisionError):
        return Response.resume()
    if isinstance(exception, ValueError):
        return Response.resume(DeadLetter("dead-bills", context.source_raw_key, context.source_raw_value))
    return Response.fail()


def undecided(context: Any, record: Any, exception: Exception) -> Response | None:
    return None if "DIVIDE_BY_ZERO" in str(exception) else decide(context, record, exception)


def as_text(context: Any, record: Any, exception: Exception) -> Response:
    if "CAST_INVALID_INPUT" in str(exception):
        letter: Any = str(exception)
        return Response.resume(DeadLetter("dead-bills", context.source_raw_key, letter))
    return decide(context, record, exception)


def about_the_error(context: Any, record: Any, exception: Exception) -> Response:
    if "CAST_INVALID_INPUT" in str(exception):
        return Response.resume(DeadLetter("dead-bills", context.source_raw_key, str(exception).encode()))
    return decide(context, record, exception)


def forgiving(context: Any, record: Any, exception: Exception) -> Response:
    response = decide(context, record, exception)
    return Response.resume() if response.fails else response


def serious_jokes(context: Any, record: Any, exception: Exception) -> Response:
    if "CAST" in str(exception) or "ZERO" in str(exception):
        return Response.resume(DeadLetter("dead-bills", context.source_raw_key, context.source_raw_value))
    return Response.fail()


WHO = {
    "half a JSON text": "deserialization",
    "guests is a word": "processing",
    "no guests": "processing",
    "price is a word": "deserialization",
    "three million for two": "production",
    "a null value": "nobody",
}

ANSWERS: list[tuple[str, Any, str]] = [
    ("go_on_without_it", lambda: {"processing_handler": LogAndContinue()}, "another handler decides"),
    ("kept_aside", lambda: {"deserialization_handler": LogAndContinue()}, "counted, not kept"),
    ("kept_aside", lambda: {"production_handler": LogAndContinue("dead-slips")}, "another handler decides"),
    ("jokes_and_worse", by_class, "an exception of Spark's is its text"),
    ("jokes_and_worse", undecided, "a handler has to decide"),
    ("jokes_and_worse", as_text, "dead letters are bytes"),
    ("jokes_and_worse", about_the_error, "not the record as it was"),
    ("jokes_and_worse", forgiving, "everything forgiven"),
    ("jokes_and_worse", LogAndContinue("dead-bills"), "everything forgiven"),
    ("jokes_and_worse", serious_jokes, "a dead letter for a joke"),
    ("who_decides", WHO | {"price is a word": "processing"}, "the schema is part of reading"),
    ("who_decides", WHO | {"no guests": "deserialization"}, "read, and then it fails"),
    (
        "accounts",
        lambda came_in, out, letters: {"out": len(out), "cannot be read": 3, "step failed": 3, "dropped": 3},
        "duplicates counted",
    ),
    (
        "accounts",
        lambda came_in, out, letters: {
            "out": len({record.key for record in out}),
            "dropped": len(set(came_in) - {record.key for record in out} - {letter.key for letter in letters}),
        },
        "bytes are no text",
    ),
    ("times_read", 2, "the first try not counted"),
]


@pytest.mark.parametrize(("exercise", "answer", "mistake"), ANSWERS)
def test_a_wrong_answer_is_told_what_is_misunderstood(exercise: str, answer: Any, mistake: str) -> None:
    assert misconception(exercise, answer) == mistake
