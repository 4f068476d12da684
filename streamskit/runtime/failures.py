"""A failed query in a user's words: which node, which line, what to do.

Spark's message holds the traceback of a Python worker; only the lines of the user's own code matter.
"""

import inspect
import linecache
import os
import re
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

from pyspark.errors import PySparkException

from streamskit.api.error_handlers import fails
from streamskit.common.call_site import file_label
from streamskit.common.errors import StreamsError
from streamskit.environment.spark_java import LOST, why_lost
from streamskit.operators.error_handling import FailedOperator, read_attribution
from streamskit.planning.plan import Plan
from streamskit.runtime.denials import denial
from streamskit.runtime.recovery import checkpoint_errors
from streamskit.runtime.recovery.exactly_once import GROWN, transaction_failure
from streamskit.topology.nodes import Node, SideEffect

HEAD = "Traceback (most recent call last):"
LIBRARIES = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
OTHERS = (*(f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], *LIBRARIES)), "<frozen")
"""Where code lives that is not the user's: streamskit, Python and its packages."""

BEYOND_SPARK = re.compile(
    r"Record at topic (\S+) partition (\d+) offset (\d+) has timestamp value (-?\d+) that overflows"
)
"""What Spark's source says about a timestamp that does not fit into microseconds."""

UNHANDLED = (
    " The processing handler cannot take single records out of a Column that calls Python for batches of them "
    "(F.pandas_udf): use F.udf, or do that work in a Processor, with process()."
)

EXPIRED = re.compile(r"org\.apache\.kafka\S*TimeoutException: (Expiring \d+ record\(s\) for (\S+)-\d+:[^\n]*)")
"""What Kafka's producer says when a partition has not taken a record in time: its topic is gone, or has no leader."""

NOT_WRITTEN = re.compile(rf"RecordTooLarge|UnknownTopic|not present in metadata|{EXPIRED.pattern}")
"""What Kafka's producer says when a topic does not take a record."""

ABSENT = re.compile(
    r"org\.apache\.kafka\S*Exception: "
    r"(?:Topic (?P<late>\S+) not present in metadata after \d+ ms\.|"
    r"There is no topic '(?P<chosen>\S+)', and none[^\n]*)"
)
"""What Kafka's producer says when it has not found a topic in time, and what our sinks say before that."""

PRODUCERS = re.compile(r"org\.apache\.kafka[\w.$]*(?:Exception|Error): [^\n]*")
"""What Kafka's producer says, within what Spark makes of it."""

DATA_EXCEPTION = re.compile(r"SQLSTATE: 22\w{3}")
"""What Spark says when a Column cannot be computed for a record: an overflow, a division by zero, a cast.

It names no line for functions such as `F.sum` or `F.to_date`.
"""

MOST_SUSPECTS = 3
"""How many steps an error names as those one of which has failed."""

WORKER_LOST = "Python worker exited unexpectedly"
"""What Spark says when a Python worker is gone."""


class Line(NamedTuple):
    """A line of a program that was under way when something was raised."""

    filename: str
    number: int

    @property
    def is_users(self) -> bool:
        """Whether it belongs to neither streamskit nor Python nor a package."""
        return not self.filename.startswith(OTHERS)

    def __str__(self) -> str:
        source = linecache.getline(self.filename, self.number).strip()
        return f"{file_label(self.filename)} line {self.number}" + (f", `{source}`" if source else "")


@dataclass(frozen=True)
class PythonError:
    """An exception raised in one of Spark's Python workers; `lines` are the user's, the last of which failed."""

    kind: str
    message: str
    lines: tuple[Line, ...]
    blame: FailedOperator | None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


def python_error(text: str) -> PythonError | None:
    """Return the exception whose traceback a message holds, or None if it holds none."""
    if HEAD not in text:
        return None
    traceback = text[text.rindex(HEAD) :]
    raised = next((line for line in traceback.splitlines()[1:] if line and not line.startswith(" ")), "an error")
    kind, _, message = raised.partition(": ")
    places = re.findall(r'^ +File "(.+)", line (\d+), in ', traceback, re.M)
    lines = [Line(name, int(number)) for name, number in places]
    users = tuple(line for line in lines if line.is_users)
    return PythonError(kind.rpartition(".")[2], message.strip(), users, read_attribution(traceback))


def explain(failure: Exception, plan: Plan, checkpoint: Path | None = None) -> StreamsError:
    """Return the error to raise for a query that failed: the node's name, what happened, what to do next.

    Args:
        failure: what Spark raised.
        plan: what the query runs.
        checkpoint: the folder where Spark notes what is done.
    """
    if isinstance(failure, (StreamsError, *LOST)):
        return failure if isinstance(failure, StreamsError) else StreamsError(why_lost(failure))
    text = str(failure)
    if checkpoint is not None and (told := checkpoint_errors.explain(text, checkpoint)) is not None:
        return told
    error = python_error(text)
    is_blamed = error is not None and error.blame is not None
    if not is_blamed and (refusal := _unreadable(plan, text) or _unwritable(plan, text)) is not None:
        return refusal
    if error is not None:
        return _python_failure(error, plan)
    why = denial(text, plan) or _absent_topic(text, plan) or transaction_failure(text, plan) or _worker_lost(text, plan)
    if why is not None:
        return why
    said = _first_line(text)
    for node in plan.nodes:
        if f"] {node.name}: " in said:
            return StreamsError(f"{_place(node)}: {said.partition(': ')[2]}")
    if NOT_WRITTEN.search(text) is not None and (refusal := _not_written(plan, said)) is not None:
        return refusal
    return _failed_column(failure, plan, said) or StreamsError(f"{_whole(plan)} failed: {said}")


def session_stopped(application_id: str) -> StreamsError:
    """Return the error for an application whose Spark session was stopped while it ran."""
    return StreamsError(
        f"The Spark session of '{application_id}' was stopped, and nobody has closed the application. Close it before "
        "its session: close(), then spark.stop(). A new KafkaStreams goes on after the last whole micro-batch."
    )


def explain_call(failure: Exception, node: SideEffect) -> StreamsError:
    """Return the error to raise when the function of a `peek` or `foreach` has failed in this process."""
    lines = [Line(frame.filename, frame.lineno or 0) for frame in extract_tb(failure.__traceback__)]
    users = [line for line in lines if line.is_users]
    said = PythonError(type(failure).__name__, str(failure), (), None)
    return StreamsError(f"{_place(node)} failed on a record{_at(users)}: {said}")


def _python_failure(error: PythonError, plan: Plan) -> StreamsError:
    """Explain an exception in a Python worker: in a task operator, whose name was noted, or in a UDF."""
    blame = error.blame
    if blame is None:
        held = [node for node in plan.nodes for function in node.functions for line in error.lines
                if _holds(function, line.filename, line.number)]  # fmt: skip
        places = " or ".join(map(_place, dict.fromkeys(held))) or _whole(plan)
        advice = "" if fails(plan.options.handlers.processing) else UNHANDLED
        return StreamsError(f"{places} failed on a record{_at(error.lines)}: {error}{advice}")
    place = _place(_node_of(blame, plan))
    if error.kind == StreamsError.__name__:
        return StreamsError(f"{place}: {error.message.removeprefix(f'{blame.operator}: ')}")
    said = error.message if error.message.startswith(f"{blame.serde} cannot") else f"{error}."
    if blame.verb == "write" and blame.store:
        return StreamsError(
            f"{place}: it gives {blame.value} to store '{blame.store}', which {blame.serde} cannot write. {said} Give "
            "the store what its serdes are for, or declare it with serdes that fit."
        )
    if blame.verb == "write":
        return StreamsError(
            f"{place}: its function returned {blame.value}, which {blame.serde} cannot write. {said} Return what the "
            "serde is for, or name one that fits."
        )
    if blame.verb == "read":
        return StreamsError(
            f"{place}: a record or the state from before holds {blame.value}, which {blame.serde} cannot read. {said} "
            "Fix the producer, or read with the serde it was written with."
        )
    return StreamsError(f"{place} failed on a record{_at(error.lines)}: {error}")


def _worker_lost(text: str, plan: Plan) -> StreamsError | None:
    """Return the error for a Python worker that is gone without a word about why, if that is what the text says."""
    if WORKER_LOST not in text:
        return None
    return StreamsError(
        f"{_whole(plan)} lost a Python worker, which ended without an error. Did the system end it because memory ran "
        "out (its log says so), did a library in C crash, or does a function call os._exit()? Give the machine or "
        "container more memory, or let fewer workers run at once, with a smaller num_stream_threads."
    )


def _node_of(blame: FailedOperator, plan: Plan) -> Node:
    """Return the node that an operator runs; if it runs several, the one on the side that failed."""
    for node in plan.nodes:
        if node.group == blame.operator and node.side == blame.side:
            return node
    # Processors that run together are each blamed by their own name.
    runs = (slot.node for slot in plan.operators if slot.operator.name == blame.operator)
    return plan.topology.nodes.get(blame.operator) or next(runs)


def _unreadable(plan: Plan, text: str) -> StreamsError | None:
    """Return the error for a record that a source's serde could not read, if that is what the text says."""
    for entry in plan.inputs:
        for serde in (entry.node.key, entry.node.value):
            if (said := _sentence(f"{serde} cannot read ", text)) is not None:
                topics = " or ".join(repr(topic) for topic in entry.topics)
                return StreamsError(
                    f"{_place(entry.node)}: a record of topic {topics} is not what its serde reads. {said} Fix the "
                    "producer, read with the serde it was written with, or go on without such records: "
                    "deserialization_handler=LogAndContinue('a-dead-letter-topic')."
                )
    if (found := BEYOND_SPARK.search(text)) is not None:
        topic, partition, offset, time = found.groups()
        entry = next((each for each in plan.inputs if topic in each.topics), plan.inputs[0])
        return StreamsError(
            f"{_place(entry.node)}: the record at offset {offset} of topic '{topic}', partition {partition}, has the "
            f"timestamp {time}, which Spark cannot read: it is beyond the year 294,000. Were nanoseconds or "
            "microseconds written where milliseconds belong? Fix the producer, and take the record away: copy the "
            "others into a new topic; or delete it and all before it (kafka-delete-records), and start with "
            "on_data_loss='continue'."
        )
    return None


def _unwritable(plan: Plan, text: str) -> StreamsError | None:
    """Return the error for a record that a sink's serde could not write, if that is what the text says."""
    for node in plan.nodes:
        for serde in (node.key, node.value):
            if (said := _sentence(f"{serde} cannot write ", text)) is not None:
                return StreamsError(
                    f"{_place(node)}: a record is not what its serde writes. {said} Give a serde that fits, or go on "
                    "without such records: production_handler=LogAndContinue('a-dead-letter-topic')."
                )
    return None


def _sentence(begin: str, text: str) -> str | None:
    """Return the sentence with this beginning among the errors in a text; Spark's plan may contain the same words."""
    found = re.search(rf"(?:Error|Exception|EXCEPTION\]):? ({re.escape(begin)}[^\n]*)", text)
    return found.group(1).split(" SQLSTATE")[0].strip() if found else None


def _not_written(plan: Plan, said: str) -> StreamsError | None:
    """Return the error for a record that a topic did not take; the sentence of Kafka's producer may not name the topic.

    The rest of Spark's message names all topics of the query, so it says nothing about which of them it was.
    """
    places = _places(plan)
    if (expired := EXPIRED.search(said)) is not None:
        why, topic = expired.groups()
        return StreamsError(
            f"{places.get(topic, _whole(plan))}: a record could not be written to topic '{topic}': {why}. Was the "
            "topic deleted, or does no broker lead the partition? When the topic is there, start the application "
            "again: it goes on after its last whole micro-batch."
        )
    named = [topic for topic in places if _is_named(topic, said)]
    may_be = named or (list(places) if "RecordTooLarge" in said else [])
    if not may_be:
        return _chosen_topic_missing(plan, said)
    place, topics = places[may_be[0]] if len(may_be) == 1 else _whole(plan), " or ".join(f"'{each}'" for each in may_be)
    reason = producers.group() if (producers := PRODUCERS.search(said)) is not None else said
    advice = GROWN if "max.request.size" in reason else ""
    return StreamsError(f"{place}: a record could not be written to topic {topics}: {reason}{advice}")


def _places(plan: Plan) -> dict[str, str]:
    """Return the topics with known names that a query writes, each with the place in the program that writes it."""
    own = [plan.changelog(store) for store in plan.stores] + [plan.calls_topic(node) for node in plan.side_effects]
    places = dict.fromkeys([*own, *plan.handovers.values()], _whole(plan))
    return places | {plan.topic(sink): _place(sink) for sink in plan.sinks if isinstance(sink.topic, str)}


def _absent_topic(text: str, plan: Plan) -> StreamsError | None:
    """Return the error for a record that has chosen a topic that is not there, if Kafka's producer names it.

    Other messages about it do not, and may come last in Spark's.
    """
    absent = ABSENT.search(text)
    if absent is None or (topic := absent["late"] or absent["chosen"]) in _places(plan):
        return None
    return _chosen_topic_missing(plan, absent.group(), f"has chosen '{topic}', and there is no topic of that name")


def _chosen_topic_missing(
    plan: Plan, said: str, what: str = "seems to have chosen one that is not there"
) -> StreamsError | None:
    """Return the error for a record that is to go to a topic that is not there, where records choose their topics."""
    sinks = [sink for sink in plan.sinks if not isinstance(sink.topic, str)]
    producers = PRODUCERS.search(said)
    if not sinks or producers is None or "RecordTooLarge" in said:
        return None
    return StreamsError(
        f"{' or '.join(map(_place, sinks))}: the function that chooses a record's topic {what} "
        f"({producers.group().strip()}). Create the topic, and start the application again: it goes on after its last "
        "whole micro-batch. To go on without such records: production_handler=LogAndContinue('a-dead-letter-topic')."
    )


def _failed_column(failure: Exception, plan: Plan, said: str) -> StreamsError | None:
    """Return the error for a function on Columns: by the line that Spark blames, or else of the few that there are."""
    nodes, line = _nodes_of(failure, plan)
    if nodes:
        return StreamsError(f"{' or '.join(map(_place, nodes))} failed on a record, at {line}: {said}")
    suspects = [node for node in plan.nodes if any(_code(function) is not None for function in node.functions)]
    if DATA_EXCEPTION.search(str(failure)) is None or not 1 <= len(suspects) <= MOST_SUSPECTS:
        return None
    return StreamsError(f"{' or '.join(map(_place, suspects))} failed on a record: {said}")


def _nodes_of(failure: Exception, plan: Plan) -> tuple[list[Node], str]:
    """Find the nodes whose functions contain a line that Spark blames; several if it cannot be narrowed down."""
    for filename, line in _blamed_lines(failure):
        holding = [
            (node, function) for node in plan.nodes for function in node.functions if _holds(function, filename, line)
        ]
        if holding:
            file = file_label(_code(holding[0][1]).co_filename)
            return [node for node, _ in holding], f"{file} line {line}"
    return [], ""


def _blamed_lines(failure: Exception) -> list[tuple[str | None, int]]:
    """Return the lines in Spark's message, as file and number; in a notebook it names no file."""
    contexts = failure.getQueryContext() if isinstance(failure, PySparkException) else []
    places = [context.callSite() for context in contexts if hasattr(context, "callSite")]
    text = "\n".join([str(failure), *places])
    # Spark names the cell that runs now, the one with start(), and not the cell where the function was written.
    in_cells = [(None, int(number)) for number in re.findall(r"line (\d+) in cell \[\d+\]", text)]
    in_files = [(name, int(number)) for name, number in re.findall(r"^(\S+):(\d+)$", text, re.M)]
    return [*in_files, *in_cells]


def _holds(function: Callable[..., Any], filename: str | None, line: int) -> bool:
    code = _code(function)
    return (
        code is not None and filename in (None, code.co_filename) and line in {number for *_, number in code.co_lines()}
    )


def _code(function: Callable[..., Any]) -> Any:
    return getattr(inspect.unwrap(function), "__code__", None)


def _place(node: Node) -> str:
    return f"{node.name} (written at {node.call_site})"


def _whole(plan: Plan) -> str:
    names = ", ".join(node.name for node in plan.nodes)
    return f"Sub-topology {plan.number} of '{plan.application_id}' ({names})"


def _at(lines: Sequence[Line]) -> str:
    """Say where the user's code failed: in the last of its lines."""
    return f", at {lines[-1]}" if lines else ""


def _is_named(topic: str, text: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(topic)}(?![\w.-])", text) is not None


def _first_line(text: str) -> str:
    """Return the sentence in Spark's message, which often comes wrapped in several others."""
    marked = re.findall(r"\[[A-Z][A-Z_.0-9]*\] [^\n]*", text.replace("[STREAM_FAILED]", ""))
    causes = re.findall(r"Caused by: ([\w.$]+(?:Exception|Error): [^\n]*)", text)
    line = (marked or causes[-1:] or text.strip().split("\n"))[0]
    # Spark's advice to switch off its checks would turn errors into wrong answers.
    return line.split(" SQLSTATE")[0].split(" If necessary set")[0].strip()
