"""What is given to be run as a topology."""

import re
from typing import Any

import pytest

from streamskit import KafkaStreams, StreamsBuilder, Topology, TopologyError
from streamskit.testing import TopologyTestDriver

NO_TOPOLOGIES = [
    (StreamsBuilder(), "is a StreamsBuilder: give builder.build()"),
    (lambda: Topology(), "is a function: call it, and give the Topology that it returns"),
    (None, "is None: give a Topology"),
    ("orders", "is 'orders': give a Topology"),
]


@pytest.mark.parametrize(("given", "said"), NO_TOPOLOGIES)
@pytest.mark.parametrize("run", [TopologyTestDriver, lambda given: KafkaStreams(given, "app", "127.0.0.1:9")])
def test_what_is_no_topology_is_told_what_to_give(run: Any, given: Any, said: str) -> None:
    with pytest.raises(TopologyError, match=re.escape(said)):
        run(given)
