"""The exercises of lab 15: what is read again after a fault, by whom, and what of it comes twice."""

from streamskit.course.labs.asking import Asks, gives, like
from streamskit.course.labs.exercise import Exercise, Lab
from streamskit.course.labs.exercises.fault_tolerance_judging import (
    added_all,
    added_once,
    changelogs,
    compacted,
    compacted_throughout,
    equal_ones_once,
    examine_batch,
    examine_copies,
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
from streamskit.course.labs.misconceptions import Misconception

LAB = Lab(
    "15-fault-tolerance",
    "Fault tolerance",
    (
        Exercise(
            "store_from_changelog",
            "Rebuild a store from the records of its changelog.",
            Asks(
                like(store_of, changelogs),
                "a changelog that Kafka Streams wrote gave the rows that its store had, and so did a longer one.",
                (
                    Misconception(
                        "tombstone missed",
                        "Rows whose value is None are left. A null value in a changelog says that the row was deleted.",
                        gives(lambda changelog: {key: value for key, value, _ in changelog}),
                    ),
                    Misconception(
                        "deletions passed over",
                        "Rows that were deleted are there again, with their value from before. A null value takes the "
                        "row away.",
                        gives(lambda changelog: {key: value for key, value, _ in changelog if value is not None}),
                    ),
                    Misconception(
                        "zero is a value",
                        "Rows with the value 0 are gone. Only None deletes.",
                        gives(lambda changelog: {key: value for key, value in store_of(changelog).items() if value}),
                    ),
                    Misconception(
                        "the order of time",
                        "An update with an older timestamp was ignored. A changelog is replayed in the order of its "
                        "offsets: what stands last was written last.",
                        gives(latest_by_time),
                    ),
                ),
            ),
            (
                "Begin with an empty dict, and do to it what each record says, in order.",
                "A record with a value sets its row; a record with None takes it away, if it is there.",
                "for key, value, _ in changelog: rows.pop(key, None) if value is None, else rows[key] = value",
            ),
        ),
        Exercise(
            "after_compaction",
            "Say which records compaction leaves in a log.",
            Asks(
                like(compacted, logs),
                "logs with large and small segments were compacted.",
                (
                    Misconception(
                        "the active segment compacted",
                        "The segment that is being written was compacted, too. Kafka leaves it as it is until it is "
                        "full.",
                        gives(compacted_throughout),
                    ),
                    Misconception(
                        "the active segment lost",
                        "The records of the segment that is being written are missing. It is not compacted, and it is "
                        "read.",
                        gives(without_the_active_segment),
                    ),
                    Misconception(
                        "looked ahead into the active segment",
                        "A key's record is gone from the closed segments because the active one has the key again. "
                        "Compaction does not look into that one yet, so that both are left.",
                        gives(looked_ahead),
                    ),
                    Misconception(
                        "first instead of last",
                        "The first record of each key is left. What counts is the last: an update replaces what was "
                        "before.",
                        gives(first_of_each),
                    ),
                    Misconception(
                        "records moved",
                        "The right records are left, in another order. Compaction takes records out; those that stay "
                        "keep their offsets.",
                        gives(in_order_of_keys),
                    ),
                ),
            ),
            (
                "Two parts: what stands before `active`, and what stands from there on. Only one of them changes.",
                "Find for each key the last offset before `active`. A record before it stays if it has that offset.",
                "last = {key: offset for offset, key, _ in records if offset < active}; keep a record if its offset "
                "is not less than active, or is last[key]",
            ),
        ),
        Exercise(
            "goes_on_from",
            "Say what is read again after each of five faults.",
            examine_copies,
            (
                "Driver and executors compute, instances answer. Each kind has a copy of the state of its own.",
                "The checkpoint is for whoever computes, the changelog for whoever answers. Who has something already "
                "reads less.",
                "Twice the checkpoint; then changelog, disk and changelog, nothing.",
            ),
        ),
        Exercise(
            "deposited",
            "Add up deposits of which some were written twice.",
            Asks(
                like(added_once, twice_in_part),
                "a batch was written twice, once whole and once in part, and every deposit counts once.",
                (
                    Misconception(
                        "duplicates added",
                        "Deposits that were written twice are added twice. Who adds up has to know which ones it has "
                        "had.",
                        gives(added_all),
                    ),
                    Misconception(
                        "equal is not the same",
                        "Two deposits of the same amount were taken for one. What makes a deposit the same one is its "
                        "number.",
                        gives(equal_ones_once),
                    ),
                    Misconception(
                        "duplicates are no neighbours",
                        "Only duplicates that follow each other are left out. A batch that runs again writes all of "
                        "its records again, after all of them.",
                        gives(neighbours_once),
                    ),
                    Misconception(
                        "deposits are no table",
                        "Only the last deposit of each account counts in your answer. That is how one reads a table "
                        "of balances; these are events.",
                        gives(last_of_each),
                    ),
                ),
            ),
            (
                "Which field says whether a record is one that you have had?",
                "Remember the numbers that were added, or put the records into a dict by their number first.",
                'once = {deposit["id"]: (account, deposit["amount"]) for account, deposit in deposits}, and add up '
                "its values",
            ),
        ),
        Exercise(
            "runs_again",
            "Find in a checkpoint which batch runs again after a crash.",
            examine_batch,
            (
                "offsets has a file for each batch that was begun, commits one for each that is done.",
                "Make sets of numbers of the names; files that begin with a dot are no batches. What is in one and "
                "not in the other?",
                "begun - done, with {int(file.name) for file in folder.iterdir() if file.name.isdigit()} of each "
                "folder; max(..., default=None)",
            ),
        ),
        Exercise(
            "never_twice",
            "Choose the setting with which a batch that runs again writes nothing twice.",
            examine_never_twice,
            (
                "What is written, and the note that it is written, have to come into being together.",
                "It is a guarantee about processing, and a setting of KafkaStreams.",
                'return {"processing_guarantee": "exactly_once"}',
            ),
        ),
    ),
)
