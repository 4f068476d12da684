"""Testing a topology without a broker, a processor without Spark; and waiting for what a running application does."""

from streamskit.environment.processes import wait_until
from streamskit.testing.driver import TopologyTestDriver
from streamskit.testing.mock_processor_context import CapturedForward, CapturedPunctuator, MockProcessorContext
from streamskit.testing.topics import TestInputTopic, TestOutputTopic, TestRecord

__all__ = [
    "CapturedForward",
    "CapturedPunctuator",
    "MockProcessorContext",
    "TestInputTopic",
    "TestOutputTopic",
    "TestRecord",
    "TopologyTestDriver",
    "wait_until",
]
