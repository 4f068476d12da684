"""An application whose Spark loses its Java, in a process of its own: prints as JSON what was seen.

python -m tests.integration.java_death_program <bootstrap servers> <name> <state_dir>
"""

import json
import sys
from typing import Any

import httpx
from pyspark import SparkContext
from pyspark.sql import functions as F

from streamskit import KafkaStreams, State, StreamsBuilder, StreamsError, UncaughtExceptionResponse
from streamskit.broker import ExternalBroker
from streamskit.environment.processes import wait_until
from streamskit.environment.session import spark_session


def main(servers: str, name: str, state_dir: str) -> None:
    broker = ExternalBroker(servers)
    spark_session()  # the UDF below cannot be made without one
    broker.create_topics(f"{name}-in")
    shout = F.udf(lambda text: text.upper(), "string")
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").map_values(lambda value: shout(value)).group_by_key().count("counts")
    topology = builder.build()

    told = list[str]()

    def replace(failure: StreamsError) -> UncaughtExceptionResponse:
        told.append(str(failure))
        return UncaughtExceptionResponse.REPLACE_THREAD

    def start(**options: Any) -> KafkaStreams:
        streams = KafkaStreams(topology, name, servers, state_dir=state_dir, **options)
        streams.start()
        broker.produce(f"{name}-in", [("k", "x")])
        streams.await_processed()
        return streams

    streams = start(application_server="127.0.0.1:0", uncaught_exception_handler=replace)
    url = f"http://{streams.application_server}"

    def get(path: str) -> tuple[int, Any]:
        answer = httpx.get(url + path, trust_env=False, timeout=30)
        return answer.status_code, answer.json()

    paths = ("/state/keyvalue/counts/k", "/health", "/ready")
    before = [get(path) for path in paths]
    SparkContext._gateway.proc.kill()  # type: ignore[union-attr]
    wait_until(lambda: streams.state is State.ERROR, "the state ERROR", 60)
    after = [get(path) for path in paths]
    raised = list[str]()
    for call in (streams.metrics, streams.await_processed, streams.explain):
        try:
            call()
        except StreamsError as failure:
            raised.append(str(failure))
    streams.close()
    again = start()
    count = again.store("counts").get("k")
    again.close()
    print(json.dumps({"before": before, "after": after, "raised": raised, "told": told, "count": count}))


if __name__ == "__main__":
    main(*sys.argv[1:])
