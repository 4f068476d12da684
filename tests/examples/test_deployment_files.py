"""The Kubernetes manifest: are its fields those that Spark's client for it knows, and its commands ours?"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from examples.music.__main__ import _parser
from streamskit.cli import serve
from streamskit.jvm import java_class

MANIFEST = Path(__file__).parents[2] / "examples" / "deployment" / "kubernetes.yaml"
PARTS = [part for part in yaml.safe_load_all(MANIFEST.read_text()) if part]
CONTAINERS = [
    (part, container)
    for part in PARTS
    if part["kind"] in ("StatefulSet", "Deployment")
    for container in part["spec"]["template"]["spec"]["containers"]
]


@pytest.mark.spark
@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part['kind']}-{part['metadata']['name']}")
def test_every_field_of_the_manifest_is_one_that_kubernetes_knows(spark: SparkSession, part: dict[str, Any]) -> None:
    assert unknown_fields(part) == []


@pytest.mark.spark
def test_a_field_that_kubernetes_does_not_know_is_found_wherever_it_stands(spark: SparkSession) -> None:
    (budget,) = [part for part in PARTS if part["kind"] == "PodDisruptionBudget"]
    wrong = budget | {"spec": budget["spec"] | {"minimumAvailable": 1}}
    assert unknown_fields(wrong) == ["spec.minimumAvailable"]


def unknown_fields(part: dict[str, Any]) -> list[str]:
    """Return the fields for which the typed objects of the Kubernetes client have no method."""
    found: list[str] = []

    def look(made: Any, written: Any, path: str) -> None:
        if isinstance(written, list):
            for index, each in enumerate(written):
                look(made.get(index), each, path)
        # Labels and limits are plain maps.
        elif isinstance(written, dict) and made.getClass().getName().startswith("io.fabric8."):
            for name, value in written.items():
                try:
                    inner = getattr(made, f"get{name[0].upper()}{name[1:]}")()
                except Py4JError:
                    found.append(f"{path}{name}")
                else:
                    look(inner, value, f"{path}{name}.")

    serialization = java_class("io.fabric8.kubernetes.client.utils.Serialization")
    look(serialization.unmarshal(yaml.safe_dump(part)), part, "")
    return found


@pytest.mark.parametrize(("part", "container"), CONTAINERS, ids=[part["metadata"]["name"] for part, _ in CONTAINERS])
def test_the_commands_of_the_pods_are_ones_that_exist(part: dict[str, Any], container: dict[str, Any]) -> None:
    _, _, module, *arguments = container["command"]
    if module == "streamskit":
        assert arguments.pop(0) == "serve"
    chosen = (serve._parser() if module == "streamskit" else _parser()).parse_args(arguments)
    assert chosen.port == container["ports"][0]["containerPort"]


@pytest.mark.parametrize(("part", "container"), CONTAINERS, ids=[part["metadata"]["name"] for part, _ in CONTAINERS])
def test_variables_that_a_command_uses_are_set_in_its_pod(part: dict[str, Any], container: dict[str, Any]) -> None:
    (settings,) = [each["data"] for each in PARTS if each["kind"] == "ConfigMap"]
    used = set(re.findall(r"\$\((\w+)\)", " ".join(container["command"])))
    assert used <= {*settings, *(each["name"] for each in container["env"])}


def test_services_lead_to_the_pods_that_are_there() -> None:
    labels = [part["spec"]["template"]["metadata"]["labels"] for part, _ in CONTAINERS]
    for service in (part for part in PARTS if part["kind"] == "Service"):
        assert any(service["spec"]["selector"].items() <= each.items() for each in labels), service["metadata"]["name"]


def test_an_application_has_one_runner_and_no_second_one_beside_it_during_an_update() -> None:
    (runner,) = [part for part, container in CONTAINERS if "examples.music" in container["command"]]
    assert (runner["kind"], runner["spec"]["replicas"]) == ("StatefulSet", 1)
