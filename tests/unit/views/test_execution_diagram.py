"""The picture of what Spark runs and what Python runs: who runs which operator, why, and without colours, too."""

from typing import Any

import pytest

from streamskit import JoinWindows, Processor, Serdes, StreamsBuilder
from streamskit.topology.drawing.shapes import Engine
from streamskit.views.execution_diagram import execution_diagram

SPARK, PYTHON = Engine.SPARK, Engine.PYTHON
COUNT, PROCESS = "KSTREAM-AGGREGATE-0000000001", "KSTREAM-PROCESSOR-0000000002"


class Passes(Processor):
    def process(self, record: Any) -> None:
        self.context.forward(record)


def both() -> StreamsBuilder:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.group_by_key().count("counts")
    stream.process(Passes).to("out")
    return builder


def test_a_count_is_sparks_and_a_processor_pythons_with_the_reason() -> None:
    diagram = execution_diagram(both().build())
    assert diagram.engines == {COUNT: SPARK, PROCESS: PYTHON}
    assert diagram.notes == {COUNT: "Spark", PROCESS: "Python"}
    assert diagram.words == f"Spark runs {COUNT}. Python runs {PROCESS}, because a processor is a class of Python."


def test_the_words_are_the_alternative_text_and_the_reasons_stand_below() -> None:
    html = execution_diagram(both().build())._repr_html_()
    alt = html.partition('alt="')[2].partition('"')[0]
    assert alt.endswith("because a processor is a class of Python.")
    assert html.endswith(f"<li>Python runs {PROCESS}, because a processor is a class of Python.</li></ul>")


def test_a_program_without_python_says_so() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count("counts")
    diagram = execution_diagram(builder.build())
    assert diagram.words == f"Spark runs {COUNT}. Python runs none of the operators."
    assert "<ul>" not in diagram._repr_html_()


@pytest.mark.columns
@pytest.mark.usefixtures("spark")
def test_python_runs_both_sides_of_a_join_and_spark_the_rest() -> None:
    builder = StreamsBuilder()
    apart = JoinWindows.of_time_difference_with_no_grace("1 minute")
    builder.stream("left").join(builder.stream("right"), lambda left, right: left, apart).to("out")
    diagram = execution_diagram(builder.build())
    sides = ["KSTREAM-JOINTHIS-0000000004", "KSTREAM-JOINOTHER-0000000005"]
    assert [name for name, engine in diagram.engines.items() if engine is PYTHON] == sides
    assert diagram.reasons[0].startswith(f"Python runs {' and '.join(sides)}, because Spark's join closes windows")


@pytest.mark.columns
@pytest.mark.usefixtures("spark")
def test_a_function_that_your_own_process_calls_is_neither() -> None:
    builder = StreamsBuilder()
    builder.stream("in").peek(lambda key, value: None).filter(lambda v: v != "").to("out")
    diagram = execution_diagram(builder.build())
    assert diagram.engines == {"KSTREAM-FILTER-0000000002": SPARK}
    assert diagram.notes["KSTREAM-PEEK-0000000001"] == "your process"


@pytest.mark.columns
@pytest.mark.usefixtures("spark")
def test_a_serde_that_runs_in_python_is_told_at_its_topic() -> None:
    schema = {"type": "record", "name": "Login", "fields": [{"name": "ok", "type": "boolean"}]}
    builder = StreamsBuilder()
    builder.stream("in", value=Serdes.avro(schema, "mock://picture", topic="in")).group_by_key().count("counts")
    assert execution_diagram(builder.build()).notes["KSTREAM-SOURCE-0000000000"] == "serde in Python"


def test_what_is_neither_a_topology_nor_an_application_is_refused() -> None:
    with pytest.raises(TypeError, match="this is a StreamsBuilder: write execution_diagram"):
        execution_diagram(both())  # type: ignore[arg-type]
