"""What streamskit logs as JSON: one object a line, as log collectors read it."""

import logging
import sys
from typing import Any, TextIO

from pythonjsonlogger.json import JsonFormatter

APPLICATION = "'%s'"
"""What a message about an application begins with."""


class _Formatter(JsonFormatter):
    """Adds the application's id, which is the first argument of a message about an application."""

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        super().add_fields(log_data, record, message_dict)
        if isinstance(record.args, tuple) and record.args and str(record.msg).startswith(APPLICATION):
            log_data["application_id"] = record.args[0]


def log_as_json(level: int | str = logging.INFO, stream: TextIO | None = None) -> None:
    """Write what streamskit logs as JSON, one object a line: timestamp, level, logger, message and application_id.

    Without this, the program's own settings of `logging` hold. A second call takes the place of the first.

    Args:
        level: the least important messages to write, as in `logging`.
        stream: where to write; standard error when not given.

    >>> log_as_json(stream=sys.stdout)  # doctest: +SKIP
    >>> logging.getLogger("streamskit").warning("'%s': no broker answers.", "trades-app")  # doctest: +SKIP
    {"level": "WARNING", ..., "message": "'trades-app': no broker answers.", "application_id": "trades-app"}

    Mirrors what Kafka's JSON layout for log4j does.
    """
    logger = logging.getLogger("streamskit")
    for handler in [each for each in logger.handlers if isinstance(each.formatter, _Formatter)]:
        logger.removeHandler(handler)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        _Formatter(
            "%(levelname)s %(name)s %(message)s", rename_fields={"levelname": "level", "name": "logger"}, timestamp=True
        )
    )
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False
