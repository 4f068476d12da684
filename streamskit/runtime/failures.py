"""A failed query in a learner's words: which node, which line, what to do."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException

from streamskit.builder import file_label
from streamskit.errors import StreamsError
from streamskit.lowering import Plan
from streamskit.topology import Node


def explain(failure: Exception, plan: Plan) -> StreamsError:
    """Return the error to raise for a query that failed: the node's name, what happened, what to do next.

    Args:
        failure: what Spark raised.
        plan: the sub-topology whose query failed.
    """
    text = str(failure)
    if "MALFORMED_RECORD_IN_PARSING" in text:
        return _unreadable(plan, text)
    topic = next((sink for sink in plan.sinks if _mentions(text, sink.topic)), None)
    if topic is not None and re.search(r"RecordTooLarge|UnknownTopic|not present in metadata", text):
        return StreamsError(
            f"{_place(topic)}: a record could not be written to topic '{topic.topic}': {_first_line(text)}"
        )
    nodes, line = _nodes_of(failure, plan)
    if nodes:
        places = " or ".join(_place(node) for node in nodes)
        return StreamsError(f"{places} failed on a record, at {line}: {_first_line(text)}")
    names = ", ".join(node.name for node in plan.nodes)
    return StreamsError(f"Sub-topology {plan.number} of '{plan.application_id}' ({names}) failed: {_first_line(text)}")


def _unreadable(plan: Plan, text: str) -> StreamsError:
    source = plan.sources[0]
    shown = re.search(r"record parsing: (.*?)\.?\n", text)
    record = f" The fields that could be read: {shown.group(1)}." if shown else ""
    return StreamsError(
        f"{_place(source)}: a record of topic {' or '.join(repr(topic) for topic in source.topics)} is not what its "
        f"serde reads ({source.value}).{record} Mend the producer, or read with the serde it was written with."
    )


def _nodes_of(failure: Exception, plan: Plan) -> tuple[list[Node], str]:
    """Find the nodes whose functions hold a line that Spark blames: several where that is all one can say."""
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
    # Spark counts cells by the one that runs now, which is start() and not the one where the function was written.
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
    return f"{node.name} (written at {node.written_at})"


def _mentions(text: str, topic: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(topic)}(?![\w.-])", text) is not None


def _first_line(text: str) -> str:
    """Return the sentence in Spark's message, which often comes wrapped in several others."""
    marked = re.findall(r"\[[A-Z_.0-9]+\] [^\n]*", text.replace("[STREAM_FAILED]", ""))
    causes = re.findall(r"Caused by: ([\w.$]+(?:Exception|Error): [^\n]*)", text)
    line = (marked or causes[-1:] or text.strip().split("\n"))[0]
    # The advice to switch Spark's checks off would make wrong answers out of errors.
    return line.split(" SQLSTATE")[0].split(" If necessary set")[0].strip()
