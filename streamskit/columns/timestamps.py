"""The function from which a source takes the times of its records, tried before any record flows."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import types as T

from streamskit.api.timestamp_extractor import TimestampExtractor
from streamskit.columns.type_inference import infer_type
from streamskit.common.errors import TopologyError
from streamskit.serdes import Serde, require_serde

Timestamps = TimestampExtractor | Callable[..., Any]
"""A `TimestampExtractor`, or a Column function that returns milliseconds since 1970."""


def check_extractor(timestamps: Timestamps | None, key: Serde, value: Serde, step: str) -> TimestampExtractor | None:
    """Return the extractor of a source, if it has one; a bare function is made one.

    Args:
        timestamps: what the program gives.
        key: the serde of the source's keys.
        value: the serde of its values.
        step: the argument, the step and its line in the program, for the error.

    Raises:
        TopologyError: the function cannot be called, or does not return milliseconds; or a serde is no serde.
    """
    if timestamps is None or (isinstance(timestamps, TimestampExtractor) and timestamps.extract is None):
        return timestamps
    extractor = timestamps if isinstance(timestamps, TimestampExtractor) else TimestampExtractor.of(timestamps)
    require_serde(key, f"{step}: key=")
    require_serde(value, f"{step}: value=")
    inputs = {"key": key.data_type, "value": value.data_type}
    result = infer_type(extractor.extract, inputs, step)  # type: ignore[arg-type]
    if not isinstance(result, T.IntegralType):
        raise TopologyError(
            f"{step}: the function has to return milliseconds since 1970 as a whole number, but returns a "
            f"{result.simpleString()}. For a timestamp write F.unix_millis(v.time)."
        )
    return extractor
