"""Testing a topology without a broker: `TopologyTestDriver` and its topics; and waiting for what a running one does."""

from streamskit.environment.processes import wait_until
from streamskit.testing.driver import TestInputTopic, TestOutputTopic, TestRecord, TopologyTestDriver

__all__ = ["TestInputTopic", "TestOutputTopic", "TestRecord", "TopologyTestDriver", "wait_until"]
