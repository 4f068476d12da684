"""Lab 05: what bytes mean, with which serde, by which schema; and serdes of one's own."""

from streamskit.course.labs.exercise import Judges, Runs
from streamskit.course.labs.exercises import serialization_answers as answers
from streamskit.course.labs.exercises.serialization_answers import NOTE, VENUE, schema
from streamskit.course.labs.exercises.serialization_judging import (
    LINES,
    MISREAD,
    as_fractions,
    as_text,
    examine_cents,
    examine_grown_schema,
    examine_schema_number,
    longs_unread,
    null_for_corrupt,
    other_forms_read,
    stock,
    tickets,
    values_read,
)
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.parts import SaysEach
from streamskit.serdes import Serdes

LAB = lab(
    "05-serialization",
    values_read=SaysEach(
        values_read, "Each of your values is the one that the serde reads in the bytes that Java wrote.", MISREAD
    ),
    stock_levels=Runs(
        stock,
        wrong={
            "bytes read as text": answers.stock(None),
            "bytes read as another number": answers.stock(Serdes.double()),
            "numbers of another width": [answers.stock(Serdes.integer()), answers.stock(Serdes.short())],
        },
        signs={
            "bytes read as text": as_text,
            "bytes read as another number": as_fractions,
            "numbers of another width": longs_unread,
        },
        tested="Payloads of 8, 4 and no bytes, and a null, went in; what came out is what Kafka Streams gave with its "
        "long serde, and what it could not read was skipped.",
    ),
    schema_number=Judges(
        examine_schema_number,
        {
            "read from the wrong end": lambda data: int.from_bytes(data[1:5], "little"),
            "magic byte taken into the number": lambda data: int.from_bytes(data[:4], "big"),
            "one byte instead of four": lambda data: data[4],
            "fails where there is no number": lambda data: int.from_bytes(data[1:5], "big") if data[0] == 0 else None,
            "magic byte not looked at": lambda data: int.from_bytes(data[1:5], "big"),
        },
    ),
    grown_schema=Judges(
        examine_grown_schema,
        {
            "field without a default": schema({"name": "venue", "type": "string"}, NOTE),
            "old field left out": schema(VENUE, NOTE, without="size"),
            "new field left out": [schema(VENUE), schema(NOTE)],
            "text instead of null": schema(VENUE, {"name": "note", "type": "string", "default": "null"}),
            "another default": schema({**VENUE, "default": ""}, NOTE),
            "type that does not fit": schema(VENUE, {**NOTE, "type": ["null", "int"]}),
        },
    ),
    Cents=Judges(
        examine_cents,
        {
            "no data_type": answers.WithoutType,
            "null not let through": answers.NoNulls,
            "sign forgotten": [answers.Unsigned, answers.UnsignedRead],
            "written from the wrong end": answers.FromTheEnd,
            "another width": answers.Wide,
            "digits instead of a number": answers.Digits,
            "read from the wrong end": answers.ReadFromTheEnd,
            "empty taken for null": answers.EmptyIsNull,
            "corrupt bytes read all the same": answers.Trusting,
            "another error than ValueError": answers.OtherError,
        },
    ),
    tickets_of_lines=Runs(
        tickets,
        wrong={
            "an error hidden as a null": answers.tickets(answers.NullForError()),
            "a line of another form read": [
                answers.tickets(serde) for serde in (answers.FirstThree(), answers.Rounded())
            ],
        },
        signs={"an error hidden as a null": null_for_corrupt, "a line of another form read": other_forms_read},
        tested=f"{len(LINES)} records went in: good lines, lines too short, too long, not numbers, not UTF-8, empty, "
        "and a null. What came out is what a plain loop in Python makes of them.",
    ),
)
