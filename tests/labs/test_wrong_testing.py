"""Tests that let a broken program through: the learner is told which one, and what to try."""

import pytest

from streamskit import TopologyTestDriver
from streamskit.course.labs import catalogue
from tests.labs.wrong_answers import misconception

pytestmark = pytest.mark.spark

FAILED = {"ok": False, "address": "10.0.0.7"}


def logins(driver: TopologyTestDriver, failures: int) -> None:
    topic = driver.create_input_topic("logins")
    for second in range(failures):
        topic.pipe_input("ada", FAILED, second * 1000)


def test_an_alarm_that_is_looked_for_only_at_the_end() -> None:
    def answer(driver: TopologyTestDriver) -> None:
        logins(driver, 3)
        assert not driver.create_output_topic("alarms").is_empty()

    assert misconception("three_failures", answer) == "slipped through: two are enough"


def test_an_alarm_that_was_never_promised() -> None:
    def answer(driver: TopologyTestDriver) -> None:
        logins(driver, 2)
        assert not driver.create_output_topic("alarms").is_empty()

    assert misconception("three_failures", answer) == "a test that a right program fails"


def test_a_record_that_is_read_and_is_not_there() -> None:
    def answer(driver: TopologyTestDriver) -> None:
        driver.create_output_topic("alarms").read_record()

    assert misconception("three_failures", answer) == "a test that a right program fails"


def test_records_without_an_assertion() -> None:
    def answer(driver: TopologyTestDriver) -> None:
        driver.create_input_topic("orders").pipe_input("ada", "orderNumber-2400")

    assert misconception("large_orders_tested", answer) == "a test that cannot fail"


def test_limits_that_are_not_tried() -> None:
    def answer(driver: TopologyTestDriver) -> None:
        driver.create_input_topic("orders").pipe_records([("ada", "orderNumber-2400"), ("bob", "orderNumber-9")])
        large = driver.create_output_topic("large-orders").read_records_to_list()
        assert [(record.key, record.value) for record in large] == [("ada", 2400)]

    assert misconception("large_orders_tested", answer) == "slipped through: 1000 is large"


def test_an_account_that_is_never_closed() -> None:
    def answer(driver: TopologyTestDriver) -> None:
        for balance in (2000, 1000):
            driver.create_input_topic("balances").pipe_input("ada", balance)
        updates = driver.create_output_topic("large-balances").read_records_to_list()
        assert [update.value for update in updates] == [2000, None]

    assert misconception("accounts_that_fall", answer) == "slipped through: a closed account stays"


def test_a_batch_taken_for_single_records() -> None:
    answer = {"one by one": 3, "as a batch": 3}
    assert misconception("alarms_of_five", answer) == "a batch taken for single records"


def test_a_mistake_in_the_test_itself_is_the_learners_to_see() -> None:
    def answer(driver: TopologyTestDriver) -> None:
        driver.no_such_method()  # type: ignore[attr-defined]

    with pytest.raises(AttributeError):
        catalogue.exercise("three_failures").examine_answer(answer)


def test_a_test_without_a_driver() -> None:
    assert "the driver" in misconception("three_failures", lambda: None)


def test_an_answer_with_a_part_missing() -> None:
    assert "'as a batch'" in misconception("alarms_of_five", {"one by one": 3})
