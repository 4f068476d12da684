"""Lessons: predict before you run, compare with what came, unfold what is long, and drawings of what happens inside."""

from streamskit.course.lessons.architectures import BOTH, KAPPA, LAMBDA, LIBRARY, same_application_many_times
from streamskit.course.lessons.deployment_drawings import music_service, where_it_runs
from streamskit.course.lessons.drawing import Drawing
from streamskit.course.lessons.folding import Described, Folded, described, fold
from streamskit.course.lessons.java_twins import java_twin
from streamskit.course.lessons.join_drawings import clocks, co_partitioned, copies, foreign_key
from streamskit.course.lessons.mechanisms import byte_strip, cached, cleaned, duality, logs, readers, readings, rekeyed
from streamskit.course.lessons.mechanisms_running import (
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
from streamskit.course.lessons.predicting import Comparison, predict, reveal
from streamskit.course.lessons.scatter_gather import checks_top, gathers_top
from streamskit.course.lessons.your_turn import YourTurn, your_turn

__all__ = [
    "BOTH",
    "KAPPA",
    "LAMBDA",
    "LIBRARY",
    "Comparison",
    "Described",
    "Drawing",
    "Folded",
    "Span",
    "SubTopology",
    "YourTurn",
    "batches_and_real_time",
    "byte_strip",
    "cached",
    "checks_top",
    "cleaned",
    "clocks",
    "co_partitioned",
    "copies",
    "described",
    "duality",
    "error_handlers",
    "fold",
    "foreign_key",
    "gathers_top",
    "java_twin",
    "logs",
    "music_service",
    "on_a_time_axis",
    "predict",
    "question_to_another_instance",
    "readers",
    "readings",
    "rekeyed",
    "restored",
    "reveal",
    "same_application_many_times",
    "spans",
    "tasks_on_threads",
    "where_it_runs",
    "your_turn",
]
