"""Spark's plan of a running query, stripped of what changes from run to run."""

import re

from pyspark.sql.streaming import StreamingQuery

WIDTH = 120

NOISE = (
    (r"#\d+L?", ""),  # the numbers Spark gives to columns
    (r"\[plan_id=\d+\]", ""),
    (r"-T[\d.]+ms", ""),
    (r", ?org\.apache[\w.$@]+", ""),
    (r"\[id = [^\]]*\]", ""),
    (r"state info \[.*?\]", "state"),
    (r"org\.apache\.spark\.sql\.\S*?(\w+)\$?@\w+", r"\1"),
)


def spark_plan(query: StreamingQuery) -> str:
    """Return the physical plan of the query's last micro-batch as text, the operators outermost first."""
    text = query._jsq.explainInternal(False)
    lines = [line for line in text.splitlines() if re.match(r"[ :+\-]*\*?(\(\d+\) )?[A-Z]\w+", line)]
    return "\n".join(_tidy(line) for line in lines)


def _tidy(line: str) -> str:
    for noise, instead in NOISE:
        line = re.sub(noise, instead, line)
    line = re.sub(r"\s+$", "", line)
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"
