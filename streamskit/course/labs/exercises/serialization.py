"""Lab 04: what bytes mean, with which serde, by which schema; and custom serdes."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

from pyspark.sql import types as T

from streamskit.api.error_handlers import LogAndContinue
from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Judges, Runs, Verdict, mistaken, right, unwritten, wrong
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.misconceptions import unasked, wrong_types
from streamskit.course.labs.parts import SaysEach, Typical
from streamskit.course.labs.recording import RECORDED, Costume, OutcomeRow, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import RegistryError, SchemaRegistry, Serde, Serdes
from streamskit.testing import TopologyTestDriver

# ---- how answers are judged ------------------------------------------------------------------------------------------


MINUTE = 60_000
"""A millisecond of the recordings is a minute of the stories."""

SKIPPING = {"deserialization_handler": LogAndContinue()}
"""What cannot be read is skipped in these checks."""

JAVA: dict[str, bytes] = {
    name: bytes.fromhex(digits)
    for name, digits in json.loads((RECORDED / "java" / "serdes.json").read_text()).items()
    if digits is not None
}
"""What Kafka's own serdes have written in Java, by the name of the case; see `tests/java`."""


# ---- bytes by hand ---------------------------------------------------------------------------------------------------

PAYLOADS: dict[str, tuple[Serde, bytes | None]] = {
    "stock": (Serdes.long(), JAVA["long"]),
    "change": (Serdes.integer(), JAVA["integer"]),
    "discount": (Serdes.short(), JAVA["short"]),
    "sold_out": (Serdes.boolean(), JAVA["boolean-false"]),
    "name": (Serdes.string(), JAVA["string"]),
    "remark": (Serdes.string(), JAVA["string-empty"]),
    "review": (Serdes.string(), None),
}
"""The bytes that the notebook shows, and the serde that its text names."""


def values_read() -> dict[str, Any]:
    """Return what the serdes read in the bytes."""
    return {name: serde.deserialize(data) for name, (serde, data) in PAYLOADS.items()}


NUMBERS = ("stock", "change", "discount")
MISREAD: dict[str, Typical] = {
    "empty and null confused": {"remark": None, "review": ""},
    "sign forgotten": {name: int.from_bytes(PAYLOADS[name][1] or b"", "big") for name in ("change", "discount")},
    "read from the wrong end": {
        name: tuple(int.from_bytes(PAYLOADS[name][1] or b"", "little", signed=signed) for signed in (False, True))
        for name in NUMBERS
    },
}


# ---- the serde of a topic --------------------------------------------------------------------------------------------


def stock() -> Recording:
    """Return the recorded stream of longs, as bytes, among bytes that are not a long."""
    dress = Costume({"in": "stock", "out": "stock-levels"}, {}, {"a": "tv", "b": "watch"}, MINUTE)
    recording = Recording.of("errors-deserialization-continue", dress, driver=SKIPPING)
    return replace(recording, steps=tuple(_as_bytes(step, Serdes.long()) for step in recording.steps))


def _as_bytes(step: Any, serde: Serde) -> Any:
    if not isinstance(step, Piped) or step.raw or step.value is None:
        return step
    return step._replace(value=serde.serialize(step.value), raw=("value",))


def as_text(outcome: Outcome) -> bool:
    """The results are texts."""
    return wrong_types(outcome) and any(isinstance(row.value, str) for row in outcome.actual)


def as_fractions(outcome: Outcome) -> bool:
    """The results are numbers with fractions."""
    return wrong_types(outcome) and any(isinstance(row.value, float) for row in outcome.actual)


def longs_unread(outcome: Outcome) -> bool:
    """No payload of 8 bytes made a result."""
    moments = outcome.at(lambda record: isinstance(record.value, bytes) and len(record.value) == 8)
    return not any(moment.actual for moment in moments) and not outcome.trial.error


# ---- the number of a schema ------------------------------------------------------------------------------------------


def examine_schema_number(answer: Any) -> Verdict:
    """Call a learner's function on records with a schema's number, and on bytes that have none."""
    for number in (258, 70_000, 1, 2):
        data = b"\0" + number.to_bytes(4, "big") + b"\x08KO"
        found = answer(data)
        if found != number:
            mistake, said = _number_misread(found, data), data.hex(" ")
            says = f"{said} was written with schema {number}, and your function says {found!r}."
            return mistaken(mistake, data=said, number=number, found=found) if mistake else wrong(says)
    if (found := answer(b"\0\0\0\0\7")) != 7:
        return mistaken("a value of no bytes", found=found)
    for payload in (b'{"symbol": "KO"}', b"KO|61.5", b"", b"\0\0\0", b"\0\0\0\7", None):
        try:
            found = answer(payload)
        except Exception as error:  # whatever the function does with bytes that are too short, or with null
            said = f"{type(error).__name__}: {error}"
            return mistaken("fails where there is no number", payload=repr(payload), error=said)
        if found is not None:
            mistake = "a number that is cut off" if payload and payload[0] == 0 else "magic byte not looked at"
            return mistaken(mistake, payload=repr(payload), found=found)
    return right(
        "Records of five schemas gave their numbers; two other texts, an empty payload, two that are cut off, "
        "and a null gave None."
    )


def _number_misread(found: Any, data: bytes) -> str:
    if found == int.from_bytes(data[1:5], "little"):
        return "read from the wrong end"
    if found in (int.from_bytes(data[:4], "big"), int.from_bytes(data[:5], "big")):
        return "magic byte taken into the number"
    return "one byte instead of four" if found in (data[4], data[1]) else ""


# ---- a schema that grows ---------------------------------------------------------------------------------------------

FIRST: dict[str, Any] = {
    "type": "record",
    "name": "Trade",
    "fields": [
        {"name": "symbol", "type": "string"},
        {"name": "price", "type": "double"},
        {"name": "size", "type": "int"},
    ],
}
"""The schema of the old records; the notebook shows it."""

TRADE = {"symbol": "PEP", "price": 170.25, "size": 40}
REGISTRIES = count()


def examine_grown_schema(answer: Any) -> Verdict:
    """Register a learner's schema after the first one, and have each read what the other wrote."""
    if answer is ... or answer is None:
        return unwritten("There is no schema yet.")
    if not isinstance(answer, dict | str):
        return wrong(f"It has to be a dict, as first_schema is, but is {answer!r}.")
    registry = SchemaRegistry(f"mock://lab-{next(REGISTRIES)}")
    first = Serdes.avro(FIRST, registry, topic="trades")
    try:
        second = Serdes.avro(answer, registry, topic="trades")
    except RegistryError as error:
        if "missing default value" in str(error):
            return mistaken("field without a default", error=error)
        if "name mismatch" in str(error):
            return mistaken("a record of another name")
        return wrong(f"The registry refuses it. {error}")
    except KeyError as error:
        return wrong(f"It is not a schema: it has no {error}, which first_schema has.")
    except (StreamsKitError, ValueError, TypeError) as error:
        return wrong(f"It is not a schema: {type(error).__name__}: {error}")
    return _differs(second.deserialize(first.serialize(TRADE))) or _does_not_fit(first, second)


def _differs(read: dict[str, Any]) -> Verdict | None:
    """Judge what the new schema has read in an old record."""
    if lost := TRADE.keys() - read.keys():
        return mistaken("old field left out", read=read, lost=", ".join(sorted(lost)))
    if missing := {"venue", "note"} - read.keys():
        return mistaken("new field left out", read=read, missing=" and no ".join(sorted(missing)))
    if read["note"] == "null" or read["venue"] is None:
        return mistaken("text instead of null", read=read)
    if read != {**TRADE, "venue": "unknown", "note": None}:
        return mistaken("another default", read=read)
    return None


def _does_not_fit(first: Serde, second: Serde) -> Verdict:
    """Judge whether new records can be written, and read by both schemas."""
    for note in (None, "by phone"):
        trade = {**TRADE, "venue": "NYSE", "note": note}
        try:
            data = second.serialize(trade)
        except ValueError as error:
            return mistaken("type that does not fit", error=error)
        try:
            is_read = second.deserialize(data) == trade and first.deserialize(data) == TRADE
        except ValueError as error:
            return wrong(f"A new record cannot be read with the old schema: {error}")
        if not is_read:
            return wrong(f"{trade} is different when it is read back.")
    with suppress(ValueError):
        second.serialize({**TRADE, "venue": None, "note": None})
        return mistaken("a venue that may be null")
    return right(
        "The registry accepts it. Your schema reads records of the old one, and both read records of yours, "
        "with a note and without."
    )


# ---- a custom serde, as Java would write it --------------------------------------------------------------------------

WHOLE = Serdes.integer()
CENTS = [WHOLE.deserialize(JAVA["integer"]), WHOLE.deserialize(JAVA["integer-most"]), 0, 6150, -(2**31)]
CORRUPT = (b"", b"\x01", b"\x00\x00\x18", b"\x00\x00\x00\x18\x06", b"61.50 EUR")


def examine_cents(answer: Any) -> Verdict:
    """Compare a serde with Java's integers, on values, null, and bytes that are none; then in a topology."""
    try:
        serde = answer() if isinstance(answer, type) else answer
    except TypeError as error:
        return wrong(f"Your class cannot be called without arguments: {error}.")
    if not isinstance(serde, Serde):
        return wrong("It has to be a class that extends Serde.")
    if found := _other_type(serde):
        return found
    found = next((each for each in (*_null_kept(serde), *_as_java(serde), *_refused(serde)) if each), None)
    return found or _in_a_topology(serde)


def _other_type(serde: Serde) -> Verdict | None:
    try:
        kind = serde.data_type
    except NotImplementedError:
        return mistaken("no data_type", case="none", kind="")
    return None if kind == T.IntegerType() else mistaken("no data_type", case="another", kind=repr(kind))


def _null_kept(serde: Serde) -> Iterator[Verdict | None]:
    for what, function in (("serialize", serde.serialize), ("deserialize", serde.deserialize)):
        found, error = _tried(function, None)
        if found is not None or error:
            did = f"raises {error!r}" if error else f"is {found!r}"
            yield mistaken("null not let through", call=f"{what}(None)", did=did)


def _as_java(serde: Serde) -> Iterator[Verdict | None]:
    for value in CENTS:
        data = WHOLE.serialize(value) or b""
        written, error = _tried(serde.serialize, value)
        if written != data:
            got = f"raises {error!r}" if error else f"gives {written!r}"
            mistake, java = _writing_mistake(value, data, written, error), data.hex(" ")
            says = f"Java writes {value} as {java}; yours {got}."
            yield mistaken(mistake, case="writing", told=says) if mistake else wrong(says)
        read, error = _tried(serde.deserialize, data)
        if read != value:
            got = f"raises {error!r}" if error else f"reads {read!r}"
            mistake = "sign forgotten" if read == int.from_bytes(data, "big") else _from_wrong_end(read, data)
            says = f"{data.hex(' ')} is {value}; yours {got}."
            yield mistaken(mistake, case="reading", told=says) if mistake else wrong(says)


def _writing_mistake(value: int, data: bytes, written: Any, error: Exception | None) -> str:
    if isinstance(written, bytes) and written == data[::-1]:
        return "written from the wrong end"
    if written == str(value).encode():
        return "digits instead of a number"
    if isinstance(written, bytes) and len(written) != len(data):
        return "another width"
    return "sign forgotten" if isinstance(error, OverflowError) else ""


def _from_wrong_end(read: Any, data: bytes) -> str:
    ends = (int.from_bytes(data, "little"), int.from_bytes(data, "little", signed=True))
    return "read from the wrong end" if read in ends else ""


def _refused(serde: Serde) -> Iterator[Verdict | None]:
    for data in CORRUPT:
        read, error = _tried(serde.deserialize, data)
        if error is None:
            name = "empty taken for null" if data == b"" and read is None else "corrupt bytes read all the same"
            yield mistaken(name, data=repr(data), read=repr(read))
        elif not isinstance(error, ValueError):
            yield mistaken("another error than ValueError", data=repr(data), error=repr(error))


def _in_a_topology(serde: Serde) -> Verdict:
    """Send Java's bytes, and others, through a topology that reads and writes with the serde."""
    builder = StreamsBuilder()
    builder.stream("prices", value=serde).map_values(lambda v: v).to("cents", value=serde)
    sent = [WHOLE.serialize(value) for value in CENTS] + [None, *CORRUPT]
    bytes_ = Serdes.byte_array()
    with TopologyTestDriver(builder.build(), **SKIPPING) as driver:  # type: ignore[arg-type]
        driver.create_input_topic("prices", value=bytes_).pipe_records([("tv", data, 0) for data in sent])
        came = [record.value for record in driver.create_output_topic("cents", value=bytes_).read_records_to_list()]
        dropped = driver.dropped()
    if came != sent[: -len(CORRUPT)] or dropped != len(CORRUPT):
        return wrong(f"In a topology {[each and each.hex(' ') for each in sent]} became {came}.")
    return right(
        f"{len(CENTS)} numbers have the bytes that Java's IntegerSerializer writes, and are read back; null stays "
        f"null; {len(CORRUPT)} payloads of other lengths are refused. A topology in Spark gives the same."
    )


def _tried(function: Callable[[Any], Any], value: Any) -> tuple[Any, Exception | None]:
    try:
        return function(value), None
    except NotImplementedError:
        raise
    except Exception as error:
        return None, error


# ---- lines of a till -------------------------------------------------------------------------------------------------

LINES: tuple[bytes | None, ...] = (
    b"KO|61.5|100",
    b"PEP|170|5",
    b"KO|61.5",
    b"KO",
    b"AAPL|cheap|10",
    None,
    b"KO|62.25|7|again",
    b"KO|61.5|",
    b"",
    b"\xffKO|61|1",
    b"NVDA|-1|3.5",
    "KÄSE|0.5|-2".encode(),
)
"""The input: good lines, one of them from an old till, seven invalid lines, one of them empty; and a null."""


def tickets() -> Recording:
    """Return the lines, read in plain Python."""
    steps = tuple(
        Piped("till-lines", "till-1", line, number * MINUTE, (), () if line is None else ("value",))
        for number, line in enumerate(LINES)
    )
    rows = tuple(
        OutcomeRow(number, "till-1", None if line is None else ticket(line), number * MINUTE)
        for number, line in enumerate(LINES)
        if line is None or ticket(line)
    )
    return Recording(steps, {"tickets": rows}, driver=SKIPPING)


def ticket(line: bytes) -> dict[str, Any] | None:
    """Return what is in a line; None if it is none."""
    try:
        symbol, price, *pieces = line.decode().split("|")
        (size,) = pieces or ["1"]
        return {"symbol": symbol, "price": float(price), "size": int(size)}
    except ValueError:
        return None


def null_for_corrupt(outcome: Outcome) -> bool:
    """A line that cannot be read became a null."""
    return any(row.value is None for m in outcome.at(lambda record: bool(record.raw)) for row in m.extra)


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "04-serialization",
    values_read=SaysEach(
        values_read, "Each of your values is the one that the serde reads in the bytes that Java wrote.", MISREAD
    ),
    stock_levels=Runs(
        stock,
        signs={
            "bytes read as text": as_text,
            "bytes read as another number": as_fractions,
            "numbers of another width": longs_unread,
        },
        tested="Payloads of 8, 4 and no bytes, and a null, went in; the results are those of Kafka Streams with its "
        "long serde, and unreadable records were skipped.",
    ),
    schema_number=Judges(
        examine_schema_number,
    ),
    grown_schema=Judges(
        examine_grown_schema,
    ),
    Cents=Judges(
        examine_cents,
    ),
    tickets_of_lines=Runs(
        tickets,
        signs={"an error hidden as a null": null_for_corrupt, "a line of another form read": unasked},
        tested=f"{len(LINES)} records went in: good lines, one of an old till, lines too short, too long, not "
        "numbers, not UTF-8, empty, and a null. The results are those of a plain loop in Python.",
    ),
)
