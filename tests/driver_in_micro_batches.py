"""A test driver as it is where Spark's real-time mode cannot run a program."""

from streamskit import TopologyTestDriver


class DriverInMicroBatches(TopologyTestDriver):
    """Runs every query in micro-batches, as an application does by default; each holds what is piped together."""

    _is_for_real_time = False
