"""A test driver beside an application that keeps all of Spark's slots busy, in a process of its own: prints JSON.

python -m tests.integration.driver_beside_real_time_program <bootstrap servers> <name> <state_dir>
"""

import json
import sys
import time

from streamskit import KafkaStreams, Serdes, State, StreamsBuilder, TopologyTestDriver, spark_session
from streamskit.broker import ExternalBroker

BATCHES = 3
SECONDS = 5
RECORDS = 6  # at least; a slow machine takes longer for them than the batches do


def main(servers: str, name: str, state_dir: str) -> None:
    broker = ExternalBroker(servers)
    broker.create_topics(f"{name}-in")
    spark_session("local[2]")  # one slot to read, one for the state
    counting, adding = StreamsBuilder(), StreamsBuilder()
    counting.stream(f"{name}-in").group_by_key().count("counts")
    adding.stream("numbers", value=Serdes.long()).group_by_key().reduce(lambda one, other: one + other, "sums")
    streams = KafkaStreams(counting.build(), name, servers, state_dir=state_dir, real_time=f"{SECONDS} seconds")
    streams.start()
    sent, longest = 0, 0.0
    end = time.monotonic() + BATCHES * SECONDS
    with TopologyTestDriver(adding.build()) as driver:
        numbers = driver.create_input_topic("numbers")
        while time.monotonic() < end or sent < RECORDS:  # batches end and begin while the driver has its own open
            began = time.monotonic()
            numbers.pipe_input("a", 1)
            longest = max(longest, time.monotonic() - began)
            sent += 1
            broker.produce(f"{name}-in", [("k", "x")])
            time.sleep(0.2)
        added = dict(driver.state_store("sums").all())["a"]
    state = streams.state
    if state is State.RUNNING:
        streams.await_processed("60 seconds")
    counted = dict(streams.store("counts").all())["k"]
    streams.close()
    told = {"state": state.name, "sent": sent, "added": added, "counted": counted, "longest": longest}
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
