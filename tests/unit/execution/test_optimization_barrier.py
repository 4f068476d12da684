"""What an operator gives is decoded once, however often the steps after it name it."""

from typing import Any

import pytest

from streamskit import Serdes, StreamsBuilder, TopologyTestDriver

pytestmark = pytest.mark.spark

ACCOUNT = Serdes.json("city string, amount int")


def executed_plans(driver: TopologyTestDriver) -> list[str]:
    """Return Spark's plan of the last micro-batch of each of a driver's queries."""
    handles: list[Any] = [query.query for query in driver._queries]
    return [handle._jsq.streamingQuery().lastExecution().executedPlan().toString() for handle in handles]


def test_the_old_and_the_new_row_of_a_grouped_table_are_decoded_once_each() -> None:
    builder = StreamsBuilder()
    accounts = builder.table("accounts", value=ACCOUNT)
    by_city = accounts.group_by(lambda k, v: (v.city, v.amount))
    by_city.reduce(lambda total, new: total + new, lambda total, old: total - old, "totals")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("accounts").pipe_input("ada", {"city": "Oslo", "amount": 1})
        plans = executed_plans(driver)
        assert dict(driver.state_store("totals").all()) == {"Oslo": 1}
    assert "readjson(" in plans[0]
    # once where the record is read, to see that it can be; then the operator's new and old value, once each
    assert plans[0].count("readjson(") == 3


def test_a_filter_after_an_operator_decodes_its_results_once() -> None:
    builder = StreamsBuilder()
    accounts = builder.stream("accounts", value=ACCOUNT).group_by_key()
    richest = accounts.reduce(lambda one, other: max(one, other, key=lambda each: each["amount"]))
    richest.to_stream().filter(lambda v: (v.amount > 10) & v.city.isNotNull()).map_values(lambda v: v.city).to("rich")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("accounts").pipe_records([("ada", {"city": "Oslo", "amount": 11}), ("bob", None)])
        (plan,) = executed_plans(driver)
        assert [record.value for record in driver.create_output_topic("rich").read_records_to_list()] == ["Oslo"]
    assert plan.count("readjson(") == 2
