"""An application whose Spark session is stopped under it, in a process of its own: prints as JSON what was seen.

python -m tests.integration.session_stop_program <bootstrap servers> <name> <state_dir>
"""

import json
import sys

from streamskit import KafkaStreams, State, StreamsBuilder, StreamsError, Topology
from streamskit.broker import ExternalBroker
from streamskit.environment.processes import wait_until
from streamskit.environment.session import spark_session


def main(servers: str, name: str, state_dir: str) -> None:
    broker = ExternalBroker(servers)
    broker.create_topics(f"{name}-in", f"{name}-out")
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").group_by_key().reduce(lambda one, other: one + other, "texts")
    counting = builder.build()
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").to(f"{name}-out")
    copying = builder.build()

    def start(topology: Topology, application_id: str) -> KafkaStreams:
        streams = KafkaStreams(topology, application_id, servers, state_dir=state_dir)
        streams.start()
        streams.await_processed()
        return streams

    broker.produce(f"{name}-in", [("k", "x")])
    # One has nothing to do at that moment, and the task of the other, in real-time mode, is under way.
    both = [start(counting, name), start(copying, f"{name}-copies")]
    spark_session().stop()
    told = list[str]()
    for streams in both:
        wait_until(lambda streams=streams: streams.state is State.ERROR, "the state ERROR", 60)  # type: ignore[misc]
        told.append(str(streams.failure))
    raised = list[str]()
    for call in (both[0].await_processed, both[0].explain):
        try:
            call()
        except StreamsError as failure:
            raised.append(str(failure))
    closed = [streams.close() for streams in both]
    broker.produce(f"{name}-in", [("k", "y")])
    again = start(counting, name)
    texts = again.store("texts").get("k")
    again.close()
    print(json.dumps({"told": told, "raised": raised, "closed": closed, "texts": texts}))


if __name__ == "__main__":
    main(*sys.argv[1:])
