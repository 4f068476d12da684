"""The exercises of lab 10: processors that keep state, choose a child, and are called by one of two clocks."""

from streamskit.api.processor import Record
from streamskit.course.labs.exercise import Runs
from streamskit.course.labs.exercises import processor_api_answers as answers
from streamskit.course.labs.exercises import processor_api_recordings as recordings
from streamskit.course.labs.exercises import processor_api_signs as signs
from streamskit.course.labs.exercises.processor_api_signs import has_no_key, is_null
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.misconceptions import stopped_at, wrong_timestamps

LAB = lab(
    "10-processor-api",
    stops_of_a_trip=Runs(
        recordings.stops,
        wrong={
            "store not connected": answers.stops(connected=False),
            "record changed in place": answers.stops(tell=answers.change),
            "state in a field": answers.stops(
                counted=answers.count_in_a_dict, delete=lambda stops, truck: stops.counts.pop(truck, None)
            ),
            "forward forgotten": [
                answers.stops(tell=lambda *_: None, leave=lambda stops, record: stops.delete(record.key))
            ],
            "null key not handled": answers.stops(without_key=answers.Stops.arrive),
            "null key forwarded": answers.stops(without_key=lambda stops, record: stops.tell(record, 1)),
            "null value not handled": answers.stops(leave=lambda stops, record: stops.tell(record, -len(record.value))),
            "nothing put into the store": answers.stops(counted=lambda stops, truck: (stops.stops.get(truck) or 0) + 1),
            "one count for all keys": answers.stops(counted=answers.count_all_trucks),
            "null value counted": answers.stops(leave=answers.Stops.arrive),
            "null value passed over": [
                answers.stops(leave=lambda stops, record: stops.delete(record.key)),
                answers.stops(leave=lambda *_: None),
            ],
            "row not deleted": answers.stops(delete=lambda stops, truck: stops.stops.get(truck)),
            "timestamp of the forwarded record": answers.stops(
                tell=lambda stops, record, count: stops.context.forward(
                    Record(record.key, count, stops.context.current_stream_time_ms())
                )
            ),
        },
        signs={
            "state in a field": signs.kept_in_a_field,
            "forward forgotten": signs.not_forwarded,
            "null key not handled": stopped_at(has_no_key),
            "null key forwarded": signs.without_key_forwarded,
            "null value not handled": stopped_at(is_null),
            "nothing put into the store": signs.never_put,
            "null value passed over": signs.nulls_passed_over,
            "timestamp of the forwarded record": wrong_timestamps,
        },
        errors={"has no store": "store not connected", "cannot assign to field": "record changed in place"},
    ),
    pallets_by_hand=Runs(
        recordings.pallets,
        wrong={
            "record changed in place": answers.pallets(unload=answers.change),
            "no child of that name": answers.pallets(moved="moved-pallets"),
            "null value not handled": answers.pallets(process=answers.Ramp.sort),
            "forward to all children": answers.pallets(process=answers.Ramp.load),
            "forward to the wrong child": answers.pallets(moved="loaded"),
            "the record as it came": answers.pallets(amount=lambda ramp, record: record),
            "zero belongs nowhere": answers.pallets(
                load=lambda ramp, record: record.value and ramp.context.forward(record)
            ),
        },
        signs={
            "null value not handled": stopped_at(is_null),
            "forward to the wrong child": signs.to_another_child,
        },
        errors={
            "cannot assign to field": "record changed in place",
            "follows it to forward to": "no child of that name",
        },
    ),
    readings_so_far=Runs(
        recordings.told_by_stream_time,
        wrong={
            "store not connected": answers.readings(init=lambda report, context: context.state_store("count")),
            "record changed in place": answers.readings(process=answers.change),
            "wall clock for stream time": answers.readings(clock=answers.WALL),
            "scheduled with every record": answers.readings(process=answers.counted_and_scheduled),
            "a report with every record": answers.readings(
                process=answers.counted_and_reported, schedule=lambda report: None
            ),
            "called too often": answers.readings(every="10 seconds"),
            "missed calls made up for": answers.readings(**answers.by_hand(made_up=True)),
            "first report forgotten": answers.readings(**answers.by_hand(first=False)),
            "the record that moved the clock not counted": answers.readings(**answers.by_hand(too_soon=True)),
            "counted anew each minute": answers.readings(report=answers.reported_and_forgotten),
            "timestamp of the forwarded record": answers.readings(told=lambda report, time: time // 60_000 * 60_000),
        },
        signs={
            "wall clock for stream time": signs.called_by_wall_clock,
            "scheduled with every record": signs.called_more_and_more,
            "a report with every record": signs.called_by_every_record,
            "called too often": signs.called_where_none_is_due,
            "first report forgotten": signs.first_call_missing,
            "timestamp of the forwarded record": wrong_timestamps,
        },
        errors={"has no store": "store not connected", "cannot assign to field": "record changed in place"},
    ),
    roll_call=Runs(
        recordings.told_by_wall_clock,
        wrong={
            "record changed in place": answers.calls(process=answers.change),
            "stream time for wall clock": answers.calls(clock=answers.STREAM),
            "punctuation not cancelled": [answers.calls(last=last) for last in (-1, 5, 6)],
            "cancelled a call too early": answers.calls(last=3),
            "first call forgotten": answers.calls(schedule=lambda call: None, process=answers.scheduled_at_first),
            "wall clock told as stream time": answers.calls(now=lambda call, time: time),
            "last record taken for stream time": answers.calls(now=lambda call, time: call.latest),
            "timestamp of the forwarded record": answers.calls(told=lambda call, time: max(0, call.latest)),
        },
        signs={
            "stream time for wall clock": signs.called_by_records,
            "punctuation not cancelled": signs.called_on_and_on,
            "first call forgotten": signs.first_call_missing,
            "timestamp of the forwarded record": wrong_timestamps,
        },
        errors={"cannot assign to field": "record changed in place"},
    ),
    highest_reading=Runs(
        recordings.highest_readings,
        wrong={
            "store not connected": answers.highest(connected=False),
            "record changed in place": answers.highest(keep=answers.change),
            "state in a field": answers.highest(
                keep=answers.keep_in_a_dict,
                rows=lambda highest: sorted(highest.kept.items()),
                delete=lambda highest, truck: highest.kept.pop(truck),
            ),
            "forward forgotten": answers.highest(tell=lambda *_: None),
            "null value not handled": answers.highest(process=answers.Highest.keep),
            "wall clock for stream time": answers.highest(clock=answers.WALL),
            "a report with every record": answers.highest(process=answers.keep_and_tell),
            "only the key in hand": answers.highest(
                rows=lambda highest: [(highest.truck, highest.highest.get(highest.truck))]
            ),
            "rows in another order": answers.highest(
                rows=lambda highest: sorted(highest.highest.all(), key=lambda row: int(row[0].split("-")[1]))
            ),
            "zero for a truck without a row": answers.highest(
                keep=lambda highest, record: highest.highest.put(
                    record.key, max(highest.highest.get(record.key) or 0.0, record.value)
                )
            ),
            "rows not deleted": answers.highest(delete=lambda *_: None),
            "last instead of highest": answers.highest(
                keep=lambda highest, record: highest.highest.put(record.key, record.value)
            ),
            "timestamp of the forwarded record": answers.highest(
                tell=lambda highest, truck, value, time: highest.context.forward(
                    Record(truck, value, time // 60_000 * 60_000)
                )
            ),
        },
        signs={
            "state in a field": signs.kept_in_a_field,
            "forward forgotten": signs.not_forwarded,
            "null value not handled": stopped_at(is_null),
            "wall clock for stream time": signs.called_by_wall_clock,
            "a report with every record": signs.called_where_none_is_due,
            "rows in another order": signs.in_another_order,
            "rows not deleted": signs.rows_told_again,
            "last instead of highest": signs.last_for_highest,
            "timestamp of the forwarded record": wrong_timestamps,
        },
        errors={"has no store": "store not connected", "cannot assign to field": "record changed in place"},
    ),
    last_seen=Runs(
        recordings.positions,
        wrong={
            "store not connected": answers.places(connected=False),
            "record changed in place": answers.places(tell=answers.change),
            "value without its time": answers.places(keep=lambda seen, record: seen.seen.put(record.key, record.value)),
            "state in a field": answers.places(
                keep=answers.place_in_a_dict, known=lambda seen, truck: seen.places.get(truck)
            ),
            "forward forgotten": answers.places(tell=lambda *_: None),
            "null value not handled": answers.places(place=lambda seen, record: "" + record.value),
            "None is Python's word": answers.places(place=lambda seen, record: f"{record.value}"),
            "nothing put into the store": answers.places(keep=lambda *_: None),
            "compared with stream time": answers.places(
                is_older=lambda seen, record, known: record.timestamp < seen.context.current_stream_time_ms()
            ),
            "equally old is not older": answers.places(
                is_older=lambda seen, record, known: known is not None and record.timestamp <= known.timestamp
            ),
            "older record believed": answers.places(is_older=lambda *_: False),
            "another time kept": answers.places(time=lambda seen, record: seen.context.current_stream_time_ms()),
        },
        signs={
            "state in a field": signs.kept_in_a_field,
            "forward forgotten": signs.not_forwarded,
            "null value not handled": stopped_at(is_null),
            "None is Python's word": signs.none_in_text,
            "nothing put into the store": signs.always_new,
            "compared with stream time": signs.older_than_the_stream_ignored,
            "equally old is not older": signs.equally_old_ignored,
            "older record believed": signs.older_record_kept,
        },
        errors={
            "has no store": "store not connected",
            "cannot assign to field": "record changed in place",
            "keeps a time beside each value": "value without its time",
        },
    ),
)
