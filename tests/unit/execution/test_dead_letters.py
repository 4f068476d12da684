"""Finished rows among which are notes of failed records: what a handler decides touches no other row."""

from typing import Any

import pytest

from streamskit import Response, StreamsBuilder, spark_session
from streamskit.api.error_handlers import Handlers
from streamskit.execution.dead_letters import ROW_TYPE, counted
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan

pytestmark = pytest.mark.spark


def go_on(context: Any, record: Any, exception: Exception) -> Response:
    return Response.resume()


def test_rows_that_are_to_stay_in_their_partition_do_so_whoever_decides_about_failures() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    (only,) = plan(builder.build(), "app", QueryOptions(handlers=Handlers(processing=go_on)))
    rows = [("app-store-changelog", b"k", b"v", 0, None, 2), ("out", b"k", b"v", 0, None, None)]
    frame = spark_session().createDataFrame(rows, f"{ROW_TYPE}, partition int")
    kept = counted(only, frame).select("topic", "partition").collect()
    assert sorted(map(tuple, kept)) == [("app-store-changelog", 2), ("out", None)]
