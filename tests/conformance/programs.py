"""The programs of the recorded vectors, written with streamskit; each name is a file in `vectors/`."""

from tests.conformance import (  # noqa: F401
    programs_basic,
    programs_errors,
    programs_examples,
    programs_joins,
    programs_ktable,
    programs_processor,
    programs_queries,
    programs_time,
    programs_windows,
)
from tests.conformance.registry import PROGRAMS, SETTINGS, Program

__all__ = ["PROGRAMS", "SETTINGS", "Program"]
