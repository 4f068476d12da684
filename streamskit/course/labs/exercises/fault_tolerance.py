"""The exercises of lab 15: what is read again after a fault, by whom, and what of it comes twice."""

from streamskit.course.labs.exercise import Judges, Runs
from streamskit.course.labs.exercises.fault_tolerance_judging import (
    COPIES,
    TYPICAL_COPIES,
    added_as_events,
    branch_totals,
    deposited,
    every_one,
    examine_never_twice,
    neighbours_once,
    standby,
    totalled,
)
from streamskit.course.labs.exercises.fault_tolerance_mission import WRONG, a_bank_that_runs, judge_move_house
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import WrongLoop
from streamskit.course.labs.missions import ID_IS_TAKEN, Lives
from streamskit.course.labs.parts import SaysEach

LAB = lab(
    "15-fault-tolerance",
    standby=Runs(
        standby,
        wrong={
            "deletions passed over": WrongLoop(lambda: standby(passed_over=True)),
            "zero is a value": WrongLoop(lambda: standby(deletes=lambda value: not value)),
            "the order of time": WrongLoop(lambda: standby(wins=lambda new, kept: new >= kept)),
            "closed twice": WrongLoop(lambda: standby(tells_all=True)),
        },
        tested="A changelog that Kafka Streams wrote went in, and a longer one: the copy has the rows of the store.",
    ),
    after_compaction=Runs(
        branch_totals,
        wrong={
            "what was before left in": [added_as_events, totalled(subtracts=False)],
            "closed accounts counted": totalled(open_only=True),
            "totals of accounts": totalled(by_branch=False),
        },
        tested="A log of which compaction had come to one half went in: the totals of all branches are right.",
    ),
    goes_on_from=SaysEach(lambda: COPIES, "Each of the three copies of the state is where you say.", TYPICAL_COPIES),
    deposited_once=Runs(
        deposited,
        wrong={
            "duplicates added": WrongLoop(every_one),
            "equal is not the same": WrongLoop(
                lambda: deposited(lambda account, deposit: (account, deposit["amount"]))
            ),
            "duplicates are no neighbours": WrongLoop(neighbours_once),
            "deposits are no table": WrongLoop(lambda: deposited(lambda account, deposit: account)),
        },
        tested="A batch was written twice, one in part, one deposit came twice, and each counts once.",
    ),
    never_twice=Judges(
        examine_never_twice, {"at least once": [dict, lambda: {"processing_guarantee": "at_least_once"}]}
    ),
    move_house=Lives(
        "move_house",
        a_bank_that_runs,
        judge_move_house,
        wrong=WRONG,
        returns_application=True,
        errors={ID_IS_TAKEN: "nobody moved"},
    ),
)
