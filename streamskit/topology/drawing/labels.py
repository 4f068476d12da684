"""A topology in plain words: what a learner calls a node, and what a screen reader says for the picture."""

import re
from collections.abc import Mapping, Sequence

from streamskit.state.stores import Store
from streamskit.topology.nodes import (
    Aggregate,
    Branch,
    CogroupAggregate,
    ColumnAggregate,
    Filter,
    ForeignKeyStep,
    GlobalTableSource,
    Node,
    PassThrough,
    RepartitionFilter,
    Sink,
    Source,
    StreamJoinSide,
    StreamTableJoin,
    TableAggregate,
    TableFilter,
    TableGroupBy,
    TableJoinSide,
    TableMapValues,
    TableMerge,
    TableSource,
)

WORDS: Mapping[type[Node], str] = {
    ColumnAggregate: "aggregate",
    Aggregate: "aggregate",
    CogroupAggregate: "aggregate",
    TableAggregate: "aggregate",
    TableSource: "table",
    GlobalTableSource: "global table",
    TableFilter: "filter",
    TableMapValues: "map values",
    TableGroupBy: "group by",
    TableMerge: "merge",
}
"""What a learner calls the nodes whose own names say something else."""

JOINS = {(False, False): "join", (True, False): "left join", (True, True): "outer join"}
"""By which side's unmatched records go out."""

FOREIGN_KEY_WORDS = {
    "register": "subscribe",
    "subscribe": "keep subscription",
    "answer": "answer subscriber",
    "notify": "notify subscribers",
    "resolve": "check answer",
    "output": "foreign-key join",
}

NAMED = {
    "KSTREAM-PEEK": "peek",
    "KSTREAM-FOREACH": "foreach",
    "KSTREAM-PRINTER": "print",
    "KSTREAM-TOTABLE": "to table",
}
"""What only Kafka's name for a node tells."""

CHOSEN = "chosen by record"
"""What stands for the topic where a function names one for each record."""


def word(node: Node) -> str:
    """Return the operator as a learner writes it: "map values" for MapValues, "left join" for a side of one."""
    if type(node) is Node:
        return node.kind.lower()
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).lower()
    return _join_word(node) or _small_word(node) or NAMED.get(node.name[:-11]) or WORDS.get(type(node)) or plain


def _join_word(node: Node) -> str | None:
    if isinstance(node, StreamJoinSide | TableJoinSide):
        return JOINS[node.outer]
    if isinstance(node, StreamTableJoin):
        return JOINS[node.left, False]
    return FOREIGN_KEY_WORDS[node.role] if isinstance(node, ForeignKeyStep) else None


def _small_word(node: Node) -> str | None:
    """Return the word for a node that is there for the sake of others, or that does its work the other way round."""
    if isinstance(node, PassThrough):
        return "keep for join" if node.stores else "split"
    if isinstance(node, Branch):
        return "default branch" if node.index < 0 else "branch"
    if isinstance(node, RepartitionFilter):
        return "keep null keys" if node.null_keys else "drop null keys"
    return "filter not" if isinstance(node, Filter | TableFilter) and node.negated else None


def topics(node: Node) -> tuple[str, ...]:
    """Return the topics that a node reads or writes."""
    if isinstance(node, Source):
        return node.topics
    if isinstance(node, Sink):
        return (node.topic if isinstance(node.topic, str) else CHOSEN,)
    return ()


def looked_up(node: Node, nodes: Mapping[str, Node]) -> list[str]:
    """Return the names of the stores that other nodes keep and this one looks into.

    Args:
        node: the node that looks.
        nodes: all nodes of the topology by name, where a global table may be found.
    """
    table = nodes.get(node.table) if isinstance(node, StreamTableJoin) else None
    of_table = table.stores if isinstance(table, GlobalTableSource) else ()
    own = {store.name for store in node.stores}
    return [name for name in dict.fromkeys([*node.reads, *(store.name for store in of_table)]) if name not in own]


def store_kind(store: Store) -> str:
    """Return what a store is called: "window store", or "buffer"."""
    return store.kind if store.kind == "buffer" else f"{store.kind} store"


def tooltip(node: Node, nodes: Mapping[str, Node]) -> str:
    """Return all there is to say about a node; `nodes` are all of the topology by name."""
    # Without the line it was written at: the same program has to give the same picture.
    return f"{node.name}: {_in_words(node, nodes)}"


def in_words(sub_topologies: Sequence[Sequence[Node]]) -> str:
    """Return a topology as sentences: the chains of each sub-topology, cut where they branch or meet."""
    every = {node.name: node for nodes in sub_topologies for node in nodes}
    sentences = []
    for number, nodes in enumerate(sub_topologies):
        chains = (" → ".join(_in_words(node, every) for node in chain) + "." for chain in _chains(nodes))
        sentences.append(f"Sub-topology {number}: {' '.join(chains)}")
    return " ".join(sentences)


def _in_words(node: Node, nodes: Mapping[str, Node]) -> str:
    if names := topics(node):
        return ("topic " if len(names) == 1 else "topics ") + ", ".join(names)
    kept = "".join(f" with {store_kind(store)} {store.name}" for store in node.stores)
    read = ", ".join(looked_up(node, nodes))
    return word(node) + kept + (f" looking into {read}" if read else "")


def _chains(nodes: Sequence[Node]) -> list[list[Node]]:
    children = {node.name: [child for child in nodes if node.name in child.parents] for node in nodes}

    def is_junction(node: Node) -> bool:
        return len(node.parents) != 1 or len(children[node.name]) != 1

    chains = []
    for node in filter(is_junction, nodes):
        if not node.parents and not children[node.name]:
            chains.append([node])
        for child in children[node.name]:
            chain = [node, child]
            while not is_junction(chain[-1]):
                chain += children[chain[-1].name]
            chains.append(chain)
    return chains
