"""Generated names for what an application keeps on the broker, which change when a step is added."""

import re
from collections.abc import Iterable

from streamskit.common.errors import TopologyError
from streamskit.topology.nodes import Sink, of_kind
from streamskit.topology.topology import Topology

MADE_UP = re.compile(r"(?!KTABLE-FK-JOIN-SUBSCRIPTION-)(K(STREAM|TABLE)-.*|(.*-)?STATE-STORE)-[0-9]{10}(-.*)?")
"""The pattern of the names that `InternalNameProvider` generates, without those of a foreign-key join's subscriptions,
which Kafka Streams accepts."""


def check_names_are_explicit(topology: Topology) -> None:
    """Check that every repartition topic, store and changelog of a topology has a name given by the user.

    Raises:
        TopologyError: some have generated names; the message lists them.

    Mirrors `InternalTopologyBuilder#checkUnprovidedNames`.
    """
    stores = [store for store in topology.stores.values() if MADE_UP.fullmatch(store.name)]
    unlogged = {store.name for node in topology.nodes.values() if node.is_global for store in node.stores}
    changelogs = [f"{store.name}-changelog" for store in stores if store.logged and store.name not in unlogged]
    repartitions = (str(sink.topic) for sink in of_kind(Sink, topology.nodes.values()) if sink.internal)
    found = {
        "changelog topics": changelogs,
        "stores": [store.name for store in stores],
        "repartition topics": [topic for topic in repartitions if MADE_UP.fullmatch(topic)],
    }
    if any(found.values()):
        raise TopologyError(
            "ensure_explicit_internal_resource_naming is set, and these have no name of yours: "
            f"{_listed(found.items())}. Name stores with materialized='a-name' (of a join with name='a-name'), and "
            "repartition topics with name='a-name' of group_by, group_by_key, repartition, to_table or the join."
        )


def _listed(names_by_kind: Iterable[tuple[str, list[str]]]) -> str:
    return "; ".join(f"{kind} {', '.join(dict.fromkeys(names))}" for kind, names in names_by_kind if names)
