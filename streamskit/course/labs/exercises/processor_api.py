"""The exercises of lab 10: processors that keep state, choose a child, and are called by one of two clocks."""

from streamskit.course.labs.exercise import Exercise, Lab, Runs
from streamskit.course.labs.exercises import processor_api_recordings as recordings
from streamskit.course.labs.exercises import processor_api_signs as signs
from streamskit.course.labs.misconceptions import Misconception, wrong_timestamps

# ---- mistakes that more than one exercise knows ----------------------------------------------------------------------

NOT_CONNECTED = Misconception(
    "store not connected",
    "The processor asks for a store that it was not given. To be in the topology is not enough: the step that uses a "
    "store has to name it.",
    signs.said("has no store"),
)
IMMUTABLE = Misconception(
    "record changed in place",
    "A record cannot be changed. with_value, with_key and with_timestamp make another one.",
    signs.said("cannot assign to field"),
)
FIELD = Misconception(
    "state in a field",
    "All records are right, and the store is empty: what you remember is in a field of the processor, perhaps. A field "
    "is gone after a restart. What has to last belongs into a store, which has a changelog.",
    signs.kept_in_a_field,
)
NOT_FORWARDED = Misconception(
    "forward forgotten",
    "The store is right, and nothing comes out. What process() returns goes nowhere: a processor passes on what it "
    "gives to forward, and nothing else.",
    signs.not_forwarded,
)
NO_NULLS = Misconception(
    "null value not handled",
    "It stopped at a record with a null value. A processor is given every record as it is; nobody filters them for it.",
    signs.stopped_at(signs.is_null),
)
WALL_CLOCK = Misconception(
    "wall clock for stream time",
    "Something came when only the wall clock had moved. Stream time is the latest timestamp among the records; it "
    "stands still while none come.",
    signs.called_by_wall_clock,
)
TIME_OF_THE_CALL = Misconception(
    "timestamp of the forwarded record",
    "Keys and values are right, and the timestamps are not. A record made in a punctuation has the time that you give "
    "it: the task asks for the one that the punctuation was called with.",
    wrong_timestamps,
)
REFUSED = {"has no store": NOT_CONNECTED.name}
GENERAL = (NOT_CONNECTED, IMMUTABLE, FIELD, NOT_FORWARDED)

STOPS = Exercise(
    "stops_of_a_trip",
    "Count each truck's stops in a store; a null value ends the trip.",
    Runs(
        recordings.stops,
        (
            *GENERAL,
            Misconception(
                "null key not handled",
                "It stopped at a record without a key. A processor is given such records, too, and a store has no row "
                "for them: leave them out first.",
                signs.stopped_at(signs.has_no_key),
            ),
            Misconception(
                "null key not handled",
                "Something came of a record without a key. A processor is given every record as it is: leaving those "
                "out is up to you.",
                signs.without_key_forwarded,
            ),
            NO_NULLS,
            Misconception(
                "nothing put into the store",
                "Every stop is counted as the first: the store is asked, and never told. get() returns a value, and "
                "what you make of it stays with you until put() writes it back.",
                signs.never_put,
            ),
            Misconception(
                "one count for all keys",
                "The first stop of a truck goes on from another truck's count. A task has many keys, and one processor "
                "for all of them: what belongs to a key is kept under that key.",
                signs.one_count_for_all_keys,
            ),
            Misconception(
                "null value counted",
                "A null value was counted as one more stop. It ends the trip, and tells how many stops there were, "
                "with a minus.",
                signs.nulls_counted,
            ),
            Misconception(
                "null value passed over",
                "Nothing came of the null values. A truck's trip ends with one: its row goes, and its count comes out.",
                signs.nulls_passed_over,
            ),
            Misconception(
                "row not deleted",
                "After the end of a trip the count goes on where it was. delete(), or put() of None, takes the row "
                "away.",
                signs.row_not_deleted,
            ),
            Misconception(
                "timestamp of the forwarded record",
                "Keys and values are right, and the timestamps are not. A count has the time of the stop that made it, "
                "though later ones came before it; with_value keeps it.",
                wrong_timestamps,
            ),
        ),
        REFUSED,
    ),
    (
        "Three kinds of records: without a key, with a null value, and all others. The first kind is dealt with.",
        "get(key) returns None where there is no row, and so does delete(key), which otherwise returns what there was. "
        "Each of the two kinds ends in one forward.",
        "With a null value: before = self.stops.delete(record.key), and forward record.with_value(None if before is "
        "None else -before). Otherwise: now = (self.stops.get(record.key) or 0) + 1, put it, and forward it.",
    ),
)

PALLETS = Exercise(
    "pallets_by_hand",
    "Wire a topology by hand, and forward each record to the children that it is for.",
    Runs(
        recordings.pallets,
        (
            IMMUTABLE,
            Misconception(
                "no child of that name",
                "forward names a child that the processor does not have. A child is the name of a node, such as a "
                "sink, and not that of its topic.",
                signs.said("follows it to forward to"),
            ),
            NO_NULLS,
            Misconception(
                "forward to all children",
                "Every record came in every topic. Without to=, forward reaches all children; with to= the one of that "
                "name.",
                signs.to_all_children,
            ),
            Misconception(
                "forward to the wrong child",
                "The right records came, in other topics than they should.",
                signs.to_another_child,
            ),
            Misconception(
                "the record as it came",
                "What was unloaded came with its minus where the amount is asked for. Each child can be given another "
                "record.",
                signs.not_negated,
            ),
            Misconception(
                "zero belongs nowhere",
                "Only the record with the value 0 is missing. Which of your cases is it?",
                signs.case_forgotten(0),
            ),
        ),
    ),
    (
        "Three cases: a null value, a negative one, all others. In which of them may forward do without to=?",
        "A null value goes to the child log. A negative one goes to two children, and not as the same record. Others "
        "go to all.",
        'self.context.forward(record.with_value(-record.value), to="moved"), then self.context.forward(record, '
        'to="log"); in the last case self.context.forward(record).',
    ),
)

READINGS = Exercise(
    "readings_so_far",
    "Tell each minute of stream time how many readings there have been.",
    Runs(
        recordings.told_by_stream_time,
        (
            NOT_CONNECTED,
            IMMUTABLE,
            WALL_CLOCK,
            Misconception(
                "scheduled with every record",
                "There are more and more reports, also where none is due: each record schedules one more punctuation. "
                "Schedule it once, in init().",
                signs.called_more_and_more,
            ),
            Misconception(
                "a report with every record",
                "Every record brought a report. process() is called for each record; what is to happen once in a "
                "minute is for a punctuation.",
                signs.called_by_every_record,
            ),
            Misconception(
                "called too often",
                "Reports come where none is due. By stream time a punctuation is due when the stream passes a "
                "multiple of its interval: once a minute, here. A number without a unit is in milliseconds.",
                signs.called_where_none_is_due,
            ),
            Misconception(
                "missed calls made up for",
                "After a gap there are several reports. A punctuation that was missed several times is called once, "
                "and the next one is due at the following multiple.",
                signs.missed_calls_made_up_for,
            ),
            Misconception(
                "first report forgotten",
                "Only the first report is missing. By stream time a punctuation is due with the very first record: "
                "before it the stream had no time at all.",
                signs.first_call_missing,
            ),
            Misconception(
                "the record that moved the clock not counted",
                "Each report is one short. A punctuation comes after the record that has moved stream time there, so "
                "that one is counted.",
                signs.counted_too_late,
            ),
            Misconception(
                "counted anew each minute",
                "Your reports begin to count anew after each one. The task asks for all readings so far.",
                signs.counted_anew,
            ),
            TIME_OF_THE_CALL,
        ),
        REFUSED,
    ),
    (
        "Two things to do in init(): begin to count, and ask to be called. A third one is a function to be called.",
        "self.context.schedule takes a duration, a clock and a function of one argument, the time. There are two "
        "clocks: PunctuationType.STREAM_TIME and PunctuationType.WALL_CLOCK_TIME.",
        'context.schedule("1 minute", PunctuationType.STREAM_TIME, self.report); report(self, time) forwards '
        'Record("all", f"{self.count} readings by {time}", time).',
    ),
)

ROLL_CALL = Exercise(
    "roll_call",
    "Tell four times, by the wall clock, how far the readings are; then be silent.",
    Runs(
        recordings.told_by_wall_clock,
        (
            IMMUTABLE,
            Misconception(
                "stream time for wall clock",
                "Reports came with records, and by stream time none come while nothing happens. A roll call has to "
                "come on a quiet road, too: that is for the wall clock.",
                signs.called_by_records,
            ),
            Misconception(
                "punctuation not cancelled",
                "The first four calls are right, and more follow. schedule() returns a handle, whose cancel() ends the "
                "calls, also from within one.",
                signs.called_on_and_on,
            ),
            Misconception(
                "cancelled a call too early",
                "Only the fourth call is missing: forward first, and then look whether that was the last.",
                signs.last_call_missing,
            ),
            Misconception(
                "first call forgotten",
                "Only the call before the first record is missing. The clock runs from the start of the application, "
                "so schedule in init(), which is called before any record.",
                signs.first_call_missing,
            ),
            Misconception(
                "wall clock told as stream time",
                "A report tells the time of its call as the stream's. They are two clocks: ask the context for stream "
                "time.",
                signs.wall_clock_for_stream_time,
            ),
            Misconception(
                "last record taken for stream time",
                "A report tells the time of the record that came last, which was out of order. Stream time is the "
                "latest timestamp so far, and never goes back.",
                signs.last_record_for_stream_time,
            ),
            TIME_OF_THE_CALL,
        ),
    ),
    (
        "schedule() returns something: keep it in a field, so that the function that is called can end it.",
        "Count the calls in a field. context.current_stream_time_ms() knows stream time, and says -1 before the first "
        "record.",
        'In init: self.handle = context.schedule("1 minute", PunctuationType.WALL_CLOCK_TIME, self.call). In call, '
        "after forward: if self.calls == 4: self.handle.cancel().",
    ),
)

HIGHEST = Exercise(
    "highest_reading",
    "Send each minute the highest reading of every truck that sent some, and begin anew.",
    Runs(
        recordings.highest_readings,
        (
            *GENERAL,
            NO_NULLS,
            WALL_CLOCK,
            Misconception(
                "a report with every record",
                "Records brought reports where none is due. process() is called for each record, and keeps; telling "
                "is for a punctuation.",
                signs.called_where_none_is_due,
            ),
            Misconception(
                "only the key in hand",
                "Each report tells of one truck. A punctuation belongs to the task and not to a key: it comes once "
                "for all keys, and all() walks through their rows.",
                signs.only_the_key_in_hand,
            ),
            Misconception(
                "rows in another order",
                "The right records came in another order. all() gives rows in the order of their keys' bytes, in which "
                "truck-10 comes before truck-2.",
                signs.in_another_order,
            ),
            Misconception(
                "zero for a truck without a row",
                "A report says 0, which no truck has sent. Where a store has no row, get() returns None; below zero, "
                "0 is no stand-in for that.",
                signs.zero_for_none,
            ),
            Misconception(
                "rows not deleted",
                "A report tells again of trucks that were silent since the one before. What has been told has to go "
                "from the store.",
                signs.rows_told_again,
            ),
            Misconception(
                "last instead of highest",
                "A truck's reading is lower than its highest: the last one was kept.",
                signs.last_for_highest,
            ),
            TIME_OF_THE_CALL,
        ),
        REFUSED,
    ),
    (
        "process() keeps the higher of two readings; a punctuation by stream time tells all rows and deletes them.",
        "process: leave null values out; put the reading if there is no row, or a lower one. The punctuation: for "
        "each row of all() forward a Record and delete the key.",
        "for truck, highest in self.highest.all(): self.context.forward(Record(truck, highest, time)), and then "
        "self.highest.delete(truck).",
    ),
)

LAST_SEEN = Exercise(
    "last_seen",
    "Keep where each truck was last, by the time of its records and not by their order.",
    Runs(
        recordings.positions,
        (
            *GENERAL,
            Misconception(
                "value without its time",
                "The store keeps a time beside each value: put a ValueAndTimestamp, of the place and of the record's "
                "time.",
                signs.said("keeps a time beside each value"),
            ),
            NO_NULLS,
            Misconception(
                "None is Python's word",
                "A text says None, where the task asks for nowhere.",
                signs.none_in_text,
            ),
            Misconception(
                "nothing put into the store",
                "Every record is taken for its truck's first. What is to be known later has to be put into the store.",
                signs.always_new,
            ),
            Misconception(
                "compared with stream time",
                "A truck of which nothing is known was ignored. Stream time is that of all trucks of the task; a "
                "truck's own time stands beside its value in the store.",
                signs.older_than_the_stream_ignored,
            ),
            Misconception(
                "equally old is not older",
                "A record as old as what is known was ignored. Only older ones are; of two that are equally old, the "
                "later to arrive counts.",
                signs.equally_old_ignored,
            ),
            Misconception(
                "older record believed",
                "A record that is older than what is known replaced it. Records arrive in the order of their offsets, "
                "not of their timestamps.",
                signs.older_record_kept,
            ),
            Misconception(
                "another time kept",
                "The places are right, and the times beside them are not. The time of a place is that of the record "
                "that told it.",
                signs.other_time_kept,
            ),
        ),
        REFUSED,
    ),
    (
        "Three cases: nothing is known of the truck; the record is not older than what is known; it is older.",
        "get() returns None, or a ValueAndTimestamp with the fields value and timestamp. Compare that with "
        "record.timestamp. Putting ValueAndTimestamp(None, ...) deletes the row.",
        "old = self.seen.get(record.key); if old is None or record.timestamp >= old.timestamp: put "
        "ValueAndTimestamp(record.value, record.timestamp) and forward the text of the move; else forward the one "
        "that begins with ignored.",
    ),
)

LAB = Lab("10-processor-api", "Processor API", (STOPS, PALLETS, READINGS, ROLL_CALL, HIGHEST, LAST_SEEN))
