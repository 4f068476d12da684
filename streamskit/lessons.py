"""Lessons: predict before you run, compare with what came, unfold what is long, and drawings of what happens inside."""

from streamskit.course.lessons.drawing import Drawing
from streamskit.course.lessons.folding import Described, Folded, described, fold
from streamskit.course.lessons.join_drawings import clocks, co_partitioned, copies, foreign_key
from streamskit.course.lessons.mechanisms import byte_strip, cached, cleaned, duality, logs, readers, rekeyed
from streamskit.course.lessons.predicting import Comparison, predict, reveal

__all__ = [
    "Comparison",
    "Described",
    "Drawing",
    "Folded",
    "byte_strip",
    "cached",
    "cleaned",
    "clocks",
    "co_partitioned",
    "copies",
    "described",
    "duality",
    "fold",
    "foreign_key",
    "logs",
    "predict",
    "readers",
    "rekeyed",
    "reveal",
]
