"""Lessons: predict before you run, compare with what came, unfold what is long, and drawings of what happens inside."""

from streamskit.course.lessons.drawing import Drawing
from streamskit.course.lessons.folding import Described, Folded, described, fold
from streamskit.course.lessons.predicting import Comparison, predict, reveal

__all__ = [
    "Comparison",
    "Described",
    "Drawing",
    "Folded",
    "described",
    "fold",
    "predict",
    "reveal",
]
