"""The exercises of lab 12: who decides about a record that fails, what is kept of it, and where all have gone."""

from streamskit.course.labs.exercise import Exercise, Lab, Says
from streamskit.course.labs.exercises.error_handling_judging import (
    ANOTHER_HANDLER,
    Decides,
    amounts,
    booked,
    examine_accounts,
    examine_who_decides,
    jokes_and_worse,
    letter_for_a_joke,
    no_letter_came,
    ordered,
    other_letters,
    resumed_too_often,
    said,
    shared,
    slips,
    stopped_at_guests,
    tries,
)
from streamskit.course.labs.misconceptions import Misconception

LAB = Lab(
    "12-error-handling",
    "Error handling",
    (
        Exercise(
            "go_on_without_it",
            "Go on without amounts that cannot be read.",
            Decides(booked, amounts, (ANOTHER_HANDLER,)),
            (
                "Three handlers can be set. Which of them is asked about bytes that the source's serde cannot read?",
                "A dict with one entry: the name of the setting, and LogAndContinue() as its value.",
                'return {"deserialization_handler": LogAndContinue()}',
            ),
        ),
        Exercise(
            "kept_aside",
            "Go on without slips that cannot be read, and keep each one in a topic of dead letters.",
            Decides(
                ordered,
                slips,
                (
                    ANOTHER_HANDLER,
                    Misconception(
                        "counted, not kept",
                        "It goes on, and no dead letter came in dead-slips. LogAndContinue() counts what it leaves "
                        "out; with the name of a topic it keeps it, too.",
                        no_letter_came("dead-slips"),
                    ),
                ),
            ),
            (
                "The same handler as before. It takes an argument.",
                "LogAndContinue is told the topic that dead letters go to.",
                'return {"deserialization_handler": LogAndContinue("dead-slips")}',
            ),
        ),
        Exercise(
            "who_decides",
            "Say for six records which handler is asked.",
            examine_who_decides,
            (
                "Follow each record: is it read by its schema, do both steps cope with it, can the result be written?",
                "Of the six, two fail when they are read, two in a step, one when it is written, and one does not "
                "fail.",
                "Half a JSON text, and a price that is a word: deserialization. Guests: processing. Three million: "
                "production. Null: nobody.",
            ),
        ),
        Exercise(
            "jokes_and_worse",
            "Write a handler: a joke is dropped, a word is kept aside, anything else stops the application.",
            Decides(
                shared,
                jokes_and_worse,
                (
                    Misconception(
                        "a handler has to decide",
                        "The handler returned no Response. It has to decide in every case: Response.resume(), with "
                        "dead letters or without, or Response.fail().",
                        said("the error handler returned"),
                    ),
                    Misconception(
                        "dead letters are bytes",
                        "A dead letter's key and value are bytes, as in a topic. The context has those of the source "
                        "record.",
                        said("A dead letter is made of bytes"),
                    ),
                    Misconception(
                        "an exception of Spark's is its text",
                        "It stopped at a bill without guests. A step that is a Column fails in the JVM: what the "
                        "handler gets is no ZeroDivisionError, and says what was wrong in its text.",
                        stopped_at_guests(lambda guests: guests == "0"),
                    ),
                    Misconception(
                        "what can be mended is kept aside",
                        "It stopped at a bill whose guests are a word. That is one for a dead letter: somebody will "
                        "mend it.",
                        stopped_at_guests(lambda guests: not guests.isdigit()),
                    ),
                    Misconception(
                        "everything forgiven",
                        "It went on at a failure that the task does not know: a price below zero. What a handler does "
                        "not expect has to stop the application, or it would empty a topic quietly.",
                        resumed_too_often,
                    ),
                    Misconception(
                        "a dead letter for a joke",
                        "A dead letter came for a bill without guests. Those are dropped without one.",
                        letter_for_a_joke,
                    ),
                    Misconception(
                        "not the record as it was",
                        "The dead letters come when they should, and hold something else than the source record: its "
                        "key and its value, byte for byte.",
                        other_letters,
                    ),
                ),
                "processing_handler",
            ),
            (
                "str(exception) tells the two apart: DIVIDE_BY_ZERO in one case, CAST_INVALID_INPUT in the other.",
                "Three ways to return: Response.resume(), Response.resume(DeadLetter(...)), Response.fail(). The "
                "context has source_raw_key and source_raw_value.",
                'DeadLetter("dead-bills", context.source_raw_key, context.source_raw_value), if "CAST_INVALID_INPUT" '
                "is in str(exception).",
            ),
        ),
        Exercise(
            "accounts",
            "Account for every bill: out, dead letters of two kinds, dropped.",
            examine_accounts,
            (
                "Work with sets of keys: what stands twice counts once, and what is missing is a difference.",
                "dict(letter.headers) has the kind as bytes under __streams.errors.exception. A letter's key has to be "
                "decoded.",
                "unread = {letter.key.decode() for letter in letters if the header is b'SerializationException'}; "
                "failed: the others; dropped = len(set(came_in) - {record.key for record in out} - unread - failed).",
            ),
        ),
        Exercise(
            "times_read",
            "Say how often a record that always fails is read, with MaxFailures(2, ...).",
            Says(
                tries,
                'MaxFailures(2, "1 minute") was asked about one failure after the other, until it gave up.',
                {
                    2: (
                        "the first try not counted",
                        "Two failures are followed by another try each; the first try came before any failure.",
                    ),
                    1: (
                        "no try after a failure",
                        "MaxFailures(2, ...) lets the query run again after a failure, twice.",
                    ),
                },
            ),
            (
                "Count from the start: the query runs, and fails. What then?",
                "After each of two failures the query runs again. After the third it does not.",
                "Once at first, and twice again.",
            ),
        ),
    ),
)
