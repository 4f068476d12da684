"""The classes of Spark's Java that PySpark calls for each Column."""

from typing import Any

import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit.jvm import OFTEN_CALLED

pytestmark = pytest.mark.spark


def test_what_columns_are_made_with_is_looked_up_once_in_a_session(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups: list[str] = []
    send = GatewayClient.send_command

    def noted(self: GatewayClient, command: str, *more: Any, **named: Any) -> Any:
        if command.startswith("r\n") and any(name in command for name in OFTEN_CALLED):
            lookups.append(command)
        return send(self, command, *more, **named)

    def made() -> str:
        return str(F.upper(F.concat(F.col("a"), F.lit("b"))))

    first = made()
    monkeypatch.setattr(GatewayClient, "send_command", noted)
    assert made() == first
    assert lookups == []
