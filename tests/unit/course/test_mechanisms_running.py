"""The drawings of lessons 12 to 16, and of why Kafka Streams: their words say what they show, and they are SVG."""

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from streamskit.course.lessons.architectures import BOTH, KAPPA, LAMBDA, LIBRARY, same_application_many_times
from streamskit.course.lessons.deployment_drawings import music_service, where_it_runs
from streamskit.course.lessons.drawing import Drawing
from streamskit.course.lessons.mechanisms_running import (
    LETTER,
    Span,
    SubTopology,
    batches_and_real_time,
    error_handlers,
    on_a_time_axis,
    question_to_another_instance,
    restored,
    spans,
    tasks_on_threads,
)

ORDERS = [SubTopology("orders", 4), SubTopology("repartition", 4)]


def written(drawing: Drawing) -> list[str]:
    """Return all texts of a drawing."""
    return [text for each in ElementTree.fromstring(drawing.svg()).iter() if (text := (each.text or "").strip())]


def test_the_handlers_have_the_counts_of_the_run() -> None:
    drawing = error_handlers({"in": 100, "read": 3, "steps": 6, "write": 1, "out": 90})
    assert {"3 fail", "6 fail", "1 fail", "100", "90"} <= set(written(drawing))
    assert "3 fail at read, 6 fail at steps, 1 fail at write, and 90 come out" in drawing.alt


def test_without_a_run_the_handlers_have_no_counts() -> None:
    assert not [text for text in written(error_handlers()) if "fail" in text and text[0].isdigit()]


def test_threads_beyond_the_tasks_are_idle() -> None:
    alt = tasks_on_threads(ORDERS, 9).alt
    assert "Thread 1 has the tasks 0_0." in alt
    assert alt.endswith("Thread 9 is idle.")


def test_every_task_is_on_exactly_one_thread() -> None:
    alt = tasks_on_threads(ORDERS, 3).alt
    assert [alt.count(f"{sub}_{part}") for sub in range(2) for part in range(4)] == [1] * 8


def test_what_was_seen_several_times_in_a_row_is_one_bar() -> None:
    samples = [(0.0, {"A": "active"}), (1.0, {"A": "active"}), (2.0, {"B": "active"}), (3.0, {})]
    assert spans(samples, {"active": "green"}) == {
        "A": [Span(0.0, 2.0, "active", "green")],
        "B": [Span(2.0, 3.0, "active", "green")],
    }


def test_what_goes_and_returns_is_two_bars() -> None:
    samples = [(0.0, {"A": "up"}), (1.0, {}), (2.0, {"A": "up"}), (3.0, {})]
    assert spans(samples, {})["A"] == [Span(0.0, 1.0, "up", "blue"), Span(2.0, 3.0, "up", "blue")]


def test_the_words_of_a_last_bar_that_is_too_short_stand_beside_it_within_the_drawing() -> None:
    lines = {"no standby": [Span(0, 7.2, "nobody", "red"), Span(7.2, 7.7, "active", "blue")],
             "one": [Span(0, 3.0, "standby", "orange"), Span(3.0, 3.1, "active", "blue")]}  # fmt: skip
    svg = on_a_time_axis("A kill", lines).svg()
    begins = [float(x) for x in re.findall(r'<text x="([\d.]+)"[^>]*>active<', svg)]
    ends = [float(x) + float(w) for x, w in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', svg)]
    assert len(begins) == 2
    assert all(any(0 < begin - end < 8 for end in ends) for begin in begins)
    assert max(begins) + LETTER * len("active") <= 760


def test_words_of_a_bar_that_is_too_short_are_left_out_where_another_bar_follows() -> None:
    lines = {"A": [Span(0, 0.1, "restores", "orange"), Span(0.1, 8, "answers", "blue")]}
    svg = on_a_time_axis("A move", lines).svg()
    assert ">answers<" in svg
    assert ">restores<" not in svg


def test_a_time_axis_tells_its_bars_and_moments() -> None:
    drawing = on_a_time_axis("A kill", {"A": [Span(0, 2, "active", "blue")]}, {"killed": 2.0})
    assert drawing.alt == "A: active from 0.0 s to 2.0 s. At 2.0 s: killed."
    assert {"A", "active", "killed", "seconds"} <= set(written(drawing))


def test_the_restored_store_has_the_last_value_of_each_key() -> None:
    drawing = restored([("ann", "1"), ("bob", "2"), ("ann", "3")])
    assert drawing.alt.endswith("a store with ann 3, bob 2.")
    assert not {"0", "1", "2"} & set(written(drawing)), "others may be between them: these are no offsets"


def test_the_way_of_a_question_names_who_asks_whom() -> None:
    drawing = question_to_another_instance("KO", "A", "C", 3, ["B"])
    assert "So A asks C" in drawing.alt
    assert "not involved: B" in written(drawing)


@pytest.mark.parametrize("architecture", [LAMBDA, KAPPA, LIBRARY, BOTH], ids=lambda each: each.title.split()[0])
def test_every_system_of_an_architecture_is_drawn_and_connected(architecture: object) -> None:
    assert isinstance(architecture, type(LAMBDA))
    texts = written(architecture.drawing())
    assert all(system.words[0] in texts for system in architecture.systems.values())
    assert {name for one, other, _ in architecture.flows for name in (one, other)} == set(architecture.systems)


def test_instances_beyond_the_partitions_are_idle() -> None:
    assert same_application_many_times(3, 2).alt.endswith("Instance 3 is idle.")


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda: same_application_many_times(0, 4), "instances=0: this drawing has room for 1 to 100 of them"),
        (lambda: same_application_many_times(2, 0), "partitions=0: this drawing has room for 1 to 100 of them"),
        (lambda: same_application_many_times("3", 4), "instances='3'"),  # type: ignore[arg-type]
        (lambda: tasks_on_threads(ORDERS, 0), "threads=0: this drawing has room for 1 to 32 of them"),
        (lambda: tasks_on_threads(ORDERS, 33), "threads=33: this drawing has room for 1 to 32 of them"),
        (lambda: tasks_on_threads([SubTopology("orders", 0)], 2), "tasks=0: this drawing has room for 1 to 32 of them"),
    ],
)
def test_a_number_of_which_nothing_can_be_drawn_is_named(draw: Callable[[], Drawing], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        draw()


def test_the_processes_of_an_application_are_drawn_as_many_as_there_are() -> None:
    drawing = where_it_runs(brokers=3, executors=2, instances=1)
    assert {"broker 1", "broker 3", "driver", "executor 2", "instance"} <= set(written(drawing))
    assert drawing.alt.endswith("1 instance answers queries, from the changelogs.")
    assert "instance" not in where_it_runs(brokers=1, executors=1).alt


def test_a_drawing_of_processes_says_what_it_has_no_room_for() -> None:
    with pytest.raises(ValueError, match="executors=6: this drawing has room for 1 to 5 of them"):
        where_it_runs(brokers=1, executors=6)


@pytest.mark.parametrize("drawing", [music_service(), batches_and_real_time()], ids=lambda each: each.title)
def test_nothing_of_a_drawing_without_numbers_is_beyond_its_paper(drawing: Drawing) -> None:
    for each in ElementTree.fromstring(drawing.svg()).iter():
        if each.tag.endswith("}rect"):
            assert float(each.attrib["x"]) + float(each.attrib["width"]) <= drawing.width
            assert float(each.attrib["y"]) + float(each.attrib["height"]) <= drawing.height
        elif each.tag.endswith("}text"):
            wide = 0.55 * float(each.attrib["font-size"]) * len(each.text or "")
            left = float(each.attrib["x"]) - wide * {"start": 0, "middle": 0.5, "end": 1}[each.attrib["text-anchor"]]
            assert 0 <= left <= left + wide <= drawing.width, each.text


def test_the_parts_of_the_music_service_are_named_in_its_words() -> None:
    named = [
        "play-events",
        "song-feed",
        "music-service",
        "music-dead-letters",
        "music-letters",
        "music-dead-letter-counts",
    ]
    assert set(named) <= set(written(music_service()))
    assert [part for part in named if part not in music_service().alt] == []


def test_a_record_in_real_time_does_not_wait_for_a_batch() -> None:
    drawing = batches_and_real_time()
    assert written(drawing).count("batch 1") == written(drawing).count("batch 2") == 1
    assert "It waits until that batch has ended, and then for its own, batch 2" in drawing.alt
    assert "as soon as it arrives, while the batch runs" in drawing.alt
