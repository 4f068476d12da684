"""The nodes of a foreign-key join: a subscription goes to the other table's task, and an answer comes back."""

from dataclasses import replace

from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.materialized import Materialized
from streamskit.dsl.materializing import key_value_store
from streamskit.serdes import Serde, Serdes
from streamskit.topology import ForeignKeyJoin, ForeignKeyStep, Node, Sink, Source, Store

PREFIX = "KTABLE-FK-JOIN"


def add_foreign_key_join(
    builder: GraphBuilder,
    left: Node,
    right: Node,
    join: ForeignKeyJoin,
    wanted: Materialized,
    value: Serde,
    name: str | None,
) -> Node:
    """Add a foreign-key join of two tables, and return the node that makes the joined table.

    Args:
        builder: the program.
        left: the node of the table whose rows hold a key of the other.
        right: the node of the other table.
        join: what the two sides are joined by; its name is given here.
        wanted: how the result is kept.
        value: the serde of the result's values.
        name: what the nodes' names begin with.
    """

    def named(ending: str, prefix: str) -> str:
        return builder._name_for(prefix, name and f"{name}-{ending}")

    right_rows, left_rows = builder._rows_of(right), builder._rows_of(left)
    bytes_only = Serdes.byte_array()
    # Names are taken in Kafka Streams' order, since each takes a number.
    there = named("subscription-registration", f"{PREFIX}-SUBSCRIPTION-REGISTRATION") + "-topic"
    register = named("subscription-registration-processor", f"{PREFIX}-SUBSCRIPTION-REGISTRATION")
    register_sink = named("subscription-registration-sink", "KTABLE-SINK")
    register_source = named("subscription-registration-source", "KTABLE-SOURCE")
    store_name = named("subscription-store", f"{PREFIX}-SUBSCRIPTION-STATE-STORE")
    subscribe = named("subscription-receive", f"{PREFIX}-SUBSCRIPTION-PROCESSOR")
    answer = named("subscription-join-foreign", f"{PREFIX}-SUBSCRIPTION-PROCESSOR")
    notify = named("foreign-join-subscription", f"{PREFIX}-SUBSCRIPTION-PROCESSOR")
    back = named("subscription-response", f"{PREFIX}-SUBSCRIPTION-RESPONSE") + "-topic"
    answer_sink = named("subscription-response-sink", "KTABLE-SINK")
    answer_source = named("subscription-response-source", "KTABLE-SOURCE")
    resolve = named("subscription-response-resolver", f"{PREFIX}-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR")
    result = named("result", f"{PREFIX}-OUTPUT")
    result_store = wanted.name or builder._store_name(f"{PREFIX}-OUTPUT-")

    join = replace(join, name=register)
    foreign, own = (right.key, bytes_only), (left.key, bytes_only)
    subscriptions = Store(store_name, "key-value", Serdes.byte_array(), bytes_only, queryable=False)
    builder._add(ForeignKeyStep, register, (left.name,), *foreign, role="register", join=join)
    builder._add(Sink, register_sink, (register,), *foreign, topic=there, internal=True)
    builder._add(Source, register_source, (), *foreign, topics=(there,), internal=True)
    builder._add(
        ForeignKeyStep, subscribe, (register_source,), *foreign, role="subscribe", join=join, store=subscriptions
    )
    builder._add(ForeignKeyStep, answer, (subscribe,), *own, role="answer", join=join, other_stores=right_rows)
    builder._add(ForeignKeyStep, notify, (right.name,), *own, role="notify", join=join, other_stores=(store_name,))
    builder._add(Sink, answer_sink, (answer, notify), *own, topic=back, internal=True)
    builder._add(Source, answer_source, (), *own, topics=(back,), internal=True)
    builder._add(
        ForeignKeyStep, resolve, (answer_source,), left.key, value, role="resolve", join=join, other_stores=left_rows
    )
    output: Node = builder._add(ForeignKeyStep, result, (resolve,), left.key, value, role="output", join=join)
    builder._stores_on_demand[result] = key_value_store(wanted, result_store, left.key, value)
    if wanted.name is not None:
        builder._rows_of(output)
    return builder._nodes[result]
