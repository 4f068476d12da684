"""Testing a topology without a broker: `TopologyTestDriver` and its topics."""

from streamskit.testing.driver import TestInputTopic, TestOutputTopic, TestRecord, TopologyTestDriver

__all__ = ["TestInputTopic", "TestOutputTopic", "TestRecord", "TopologyTestDriver"]
