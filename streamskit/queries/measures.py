"""What an application and its instances measure, under the names that Kafka Streams' metrics have in Prometheus.

Kafka Streams reports through JMX, and Prometheus' exporter writes `process-total` of the group `stream-thread-metrics`
as `kafka_streams_stream_thread_metrics_process_total`. Dashboards made for these find the same here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

__all__ = ["CONTENT_TYPE_LATEST", "MEASURES", "Measure", "page"]

PREFIX = "kafka_streams_"

MEASURES = {
    "stream_metrics_state": "1 for the state that the application is in (label state).",
    "stream_metrics_alive_stream_threads": "How many of its queries run.",
    "stream_metrics_failed_stream_threads": "How often a query ran again, after a failure or an outage.",
    "stream_thread_metrics_process_total": "Records that a query has processed.",
    "stream_thread_metrics_process_rate": "Records a second, in the last micro-batch that had some.",
    "stream_thread_metrics_commit_total": "Micro-batches that a query has done.",
    "stream_thread_metrics_commit_latency_avg": (
        "Average milliseconds of the last ten micro-batches; in real-time mode, without reading."
    ),
    "stream_thread_metrics_commit_latency_max": "The most milliseconds that one of the last ten micro-batches took.",
    "stream_task_metrics_dropped_records_total": "Records that a node dropped: late, or incomplete.",
    "stream_task_metrics_lost_records_total": "Records that were deleted before a query read them.",
    "stream_task_metrics_records_lag": "Records of a partition that have not been processed yet.",
    "stream_task_metrics_restore_remaining_records_total": "Records of a changelog that a copy has not read yet.",
    "stream_state_metrics_estimate_num_keys": "Rows of a store on this instance, standby replicas included.",
}
"""All that is measured, and what it says."""

SHRINKS = "stream_task_metrics_restore_remaining_records_total"
"""The one name with `_total` whose number does not only grow: Kafka Streams calls it so."""


@dataclass(frozen=True)
class Measure:
    """One number that was measured.

    Args:
        name: one of `MEASURES`.
        value: the number.
        labels: what it was measured of.
    """

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


def page(application_id: str, measures: Iterable[Measure]) -> bytes:
    """Return what Prometheus reads.

    Args:
        application_id: the application; each number has it as a label.
        measures: the numbers.

    >>> [thread] = [Measure("stream_metrics_alive_stream_threads", 2)]
    >>> print(page("trades-app", [thread]).decode().splitlines()[-1])
    kafka_streams_stream_metrics_alive_stream_threads{application_id="trades-app"} 2.0
    """
    registry = CollectorRegistry()
    registry.register(_Page(application_id, list(measures)))
    return generate_latest(registry)


class _Page(Collector):
    """The numbers of one moment, a family for each name."""

    def __init__(self, application_id: str, measures: list[Measure]) -> None:
        self._application_id, self._measures = application_id, measures

    def collect(self) -> Iterator[Metric]:
        for name, said in MEASURES.items():
            if found := [each for each in self._measures if each.name == name]:
                yield self._family(name, said, found)

    def _family(self, name: str, said: str, measures: list[Measure]) -> Metric:
        labels = ["application_id", *measures[0].labels]
        kind = CounterMetricFamily if name.endswith("_total") and name != SHRINKS else GaugeMetricFamily
        family = kind(PREFIX + name, said, labels=labels)
        for each in measures:
            family.add_metric([self._application_id, *each.labels.values()], each.value)
        return family
