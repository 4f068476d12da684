"""The exercises of lab 05: what bytes mean, with which serde, by which schema; and serdes of one's own."""

from streamskit.course.labs.exercise import Exercise, Lab, Runs
from streamskit.course.labs.exercises.serialization_judging import (
    LINES,
    as_fractions,
    as_text,
    examine_cents,
    examine_grown_schema,
    examine_schema_number,
    examine_values,
    longs_unread,
    null_for_corrupt,
    other_forms_read,
    stock,
    tickets,
    told,
)
from streamskit.course.labs.misconceptions import Misconception

LAB = Lab(
    "05-serialization",
    "Serialization",
    (
        Exercise(
            "values_read",
            "Read the bytes of seven values.",
            examine_values,
            (
                "Numbers are big-endian, so the first byte counts most, and negative ones begin with ff.",
                "Text is UTF-8. How many bytes has an empty text, and how many has a null?",
                'int.from_bytes(data, "big", signed=True), data.decode(), or the serde itself: Serdes.short().',
            ),
        ),
        Exercise(
            "stock_levels",
            "Read a topic with the serde that wrote it.",
            told(
                "Payloads of 8, 4 and no bytes, and a null, went in; what came out is what Kafka Streams gave "
                "with its long serde, and what it could not read was skipped.",
                Runs(
                    stock,
                    (
                        Misconception(
                            "bytes read as text",
                            "The results are texts. Any bytes are some text, so there is no error, and no number "
                            "either. Without value= a stream reads text.",
                            as_text,
                        ),
                        Misconception(
                            "bytes read as another number",
                            "The results are numbers with fractions. A long and a double both have 8 bytes, so the one "
                            "serde reads what the other wrote, and makes something else of it.",
                            as_fractions,
                        ),
                        Misconception(
                            "numbers of another width",
                            "The numbers have 8 bytes here, and your serde wants another width. It refuses them all, "
                            "and may take other bytes for a number.",
                            longs_unread,
                        ),
                    ),
                ),
            ),
            (
                "Count the bytes of one value. Which of Kafka's numbers have as many?",
                "Two have 8 bytes, and only one of them is a whole number.",
                'builder.stream("stock", value=Serdes.long())',
            ),
        ),
        Exercise(
            "schema_number",
            "Find a schema's number in the bytes of a record.",
            examine_schema_number,
            (
                "A registry's record begins with a byte 0, and then comes the number.",
                "It has 4 bytes: data[1:5]. What if there are fewer, or the first byte is another?",
                'if data is None or len(data) < 5 or data[0] != 0: return None; then int.from_bytes(data[1:5], "big")',
            ),
        ),
        Exercise(
            "grown_schema",
            "Add two fields to an Avro schema so that old records can still be read.",
            examine_grown_schema,
            (
                "An old record has neither field. What should a reader put in their place?",
                'Each new field has a "default". A type of text or null is written as a list of both.',
                '{"name": "note", "type": ["null", "string"], "default": None}, and venue likewise with "unknown".',
            ),
        ),
        Exercise(
            "Cents",
            "Write a serde whose bytes are those of Java's integers.",
            examine_cents,
            (
                "Three parts: the Spark type, value to bytes, bytes to value. What is None in either direction?",
                'value.to_bytes(4, "big", signed=True), and the same way back.',
                'if len(data) != 4: raise ValueError(...), before int.from_bytes(data, "big", signed=True)',
            ),
        ),
        Exercise(
            "tickets_of_lines",
            "Read a till's lines with a serde of your own, and write them as JSON.",
            told(
                f"{len(LINES)} records went in: good lines, lines too short, too long, not numbers, not UTF-8, empty, "
                "and a null. What came out is what a plain loop in Python makes of them.",
                Runs(
                    tickets,
                    (
                        Misconception(
                            "an error hidden as a null",
                            "A line that cannot be read came out as a null: a tombstone, which deletes. Let the serde "
                            "raise a ValueError; what is to become of such a record, the application decides.",
                            null_for_corrupt,
                        ),
                        Misconception(
                            "a line of another form read",
                            "Something that is no line of this form became a ticket. There are exactly three parts; "
                            "the second is a number, the third a whole one.",
                            other_forms_read,
                        ),
                    ),
                ),
            ),
            (
                "A class that extends Serde, as in exercise 5: a data_type, serialize and deserialize.",
                'symbol, price, size = data.decode().split("|") fails by itself where there are not three parts.',
                'builder.stream("till-lines", value=TillLine()).to("tickets", value=TICKET)',
            ),
        ),
    ),
)
