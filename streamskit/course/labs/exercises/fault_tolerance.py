"""The exercises of lab 15: what is read again after a fault, by whom, and what of it comes twice."""

from streamskit.course.labs.asking import Asks, like
from streamskit.course.labs.exercise import Judges
from streamskit.course.labs.exercises.fault_tolerance_judging import (
    COPIES,
    TYPICAL_COPIES,
    added_all,
    added_once,
    changelogs,
    compacted,
    compacted_throughout,
    equal_ones_once,
    examine_never_twice,
    first_of_each,
    in_order_of_keys,
    last_of_each,
    latest_by_time,
    logs,
    looked_ahead,
    neighbours_once,
    store_of,
    twice_in_part,
    without_the_active_segment,
)
from streamskit.course.labs.exercises.fault_tolerance_mission import (
    TWO_OF_ONE_ID,
    WRONG,
    a_bank_that_runs,
    judge_move_house,
)
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.missions import Lives
from streamskit.course.labs.parts import SaysEach

LAB = lab(
    "15-fault-tolerance",
    store_from_changelog=Asks(
        like(store_of, changelogs),
        "a changelog that Kafka Streams wrote gave the rows that its store had, and so did a longer one.",
        wrong={
            "tombstone missed": lambda changelog: {key: value for key, value, _ in changelog},
            "deletions passed over": lambda changelog: {key: value for key, value, _ in changelog if value is not None},
            "zero is a value": lambda changelog: {key: value for key, value in store_of(changelog).items() if value},
            "the order of time": latest_by_time,
        },
    ),
    after_compaction=Asks(
        like(compacted, logs),
        "logs with large and small segments were compacted.",
        wrong={
            "the active segment compacted": compacted_throughout,
            "the active segment lost": without_the_active_segment,
            "looked ahead into the active segment": looked_ahead,
            "first instead of last": first_of_each,
            "records moved": in_order_of_keys,
        },
    ),
    goes_on_from=SaysEach(lambda: COPIES, "Each of the three copies of the state is where you say.", TYPICAL_COPIES),
    deposited=Asks(
        like(added_once, twice_in_part),
        "a batch was written twice, once whole and once in part, one deposit came twice, and each counts once.",
        wrong={
            "duplicates added": added_all,
            "equal is not the same": equal_ones_once,
            "duplicates are no neighbours": neighbours_once,
            "deposits are no table": last_of_each,
        },
    ),
    never_twice=Judges(
        examine_never_twice, {"at least once": [dict, lambda: {"processing_guarantee": "at_least_once"}]}
    ),
    move_house=Lives("move_house", a_bank_that_runs, judge_move_house, wrong=WRONG, errors=TWO_OF_ONE_ID),
)
