"""What Prometheus reads from an instance, and the dashboard that shows it."""

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from streamskit.queries.measures import MEASURES, PREFIX, Measure, page
from tests.unit.queries.rest_harness import ALL_ACTIVE, cluster

DASHBOARD = Path(__file__).parents[3] / "docs" / "grafana-dashboard.json"


def test_a_number_is_read_as_it_was_measured() -> None:
    measures = [
        Measure("stream_task_metrics_dropped_records_total", 3, {"subtopology": "0", "processor_node": "count"}),
        Measure("stream_task_metrics_dropped_records_total", 1, {"subtopology": "0", "processor_node": 'a"b'}),
        Measure("stream_thread_metrics_process_rate", 2.5, {"subtopology": "0"}),
    ]
    families = list(text_string_to_metric_families(page("app", measures).decode()))
    found = {sample.labels.get("processor_node", ""): sample.value for each in families for sample in each.samples}
    assert found == {"count": 3, 'a"b': 1, "": 2.5}
    assert all(sample.labels["application_id"] == "app" for each in families for sample in each.samples)
    assert [family.type for family in families] == ["gauge", "counter"]


KAFKA_STREAMS = {
    "stream-metrics": ("state", "alive-stream-threads", "failed-stream-threads"),
    "stream-thread-metrics": (
        "process-total", "process-rate", "commit-total", "commit-latency-avg", "commit-latency-max",
    ),
    "stream-task-metrics": ("dropped-records-total", "restore-remaining-records-total"),
    "stream-state-metrics": ("estimate-num-keys",),
}  # fmt: skip
"""Names that Kafka Streams' sources give its metrics, by the group that they are in."""


def test_names_are_those_of_kafka_streams_except_for_two() -> None:
    theirs = {f"{group}-{name}".replace("-", "_") for group, names in KAFKA_STREAMS.items() for name in names}
    assert theirs - set(MEASURES) == set()
    assert set(MEASURES) - theirs == {"stream_task_metrics_records_lag", "stream_task_metrics_lost_records_total"}


def test_what_is_still_to_be_restored_may_shrink_though_its_name_says_total() -> None:
    name = "stream_task_metrics_restore_remaining_records_total"
    (family,) = text_string_to_metric_families(page("app", [Measure(name, 3)]).decode())
    assert (family.type, [sample.name for sample in family.samples]) == ("gauge", [PREFIX + name])


def test_an_instance_answers_with_what_it_measures() -> None:
    with cluster(ALL_ACTIVE) as one:
        one.instances[0].measured = [Measure("stream_metrics_alive_stream_threads", 2)]
        answer = one.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert f'{PREFIX}stream_metrics_alive_stream_threads{{application_id="app"}} 2.0' in answer.text


def test_an_instance_with_a_token_shows_its_numbers_to_those_who_have_it() -> None:
    with cluster(ALL_ACTIVE, token="secret") as one:
        assert one.get("/metrics").status_code == 200
        assert one.get("/metrics", authorization="Bearer other").status_code == 401


def test_the_dashboard_shows_all_that_is_measured_and_nothing_else() -> None:
    queries = " ".join(
        target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]
    )
    assert set(re.findall(rf"{PREFIX}(\w+)", queries)) == set(MEASURES)
