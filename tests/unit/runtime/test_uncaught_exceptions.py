"""What happens to a query that fails: the handler's answer, and the query that runs again."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

from streamskit import Serdes, StreamsBuilder
from streamskit.common.errors import BrokerError, StreamsError
from streamskit.planning.plan import Plan
from streamskit.planning.planner import plan
from streamskit.runtime import MaxFailures, State, UncaughtExceptionResponse
from streamskit.runtime import broker_watch as outages
from streamskit.runtime import query as queries
from streamskit.runtime.progress import Metrics
from streamskit.runtime.query import RunningQuery
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.recovery.data_loss import DataLoss
from streamskit.runtime.states import StateMachine
from streamskit.runtime.supervisor import SESSION, STARTING, Supervisor
from streamskit.runtime.uncaught_exceptions import ask, check_handler
from streamskit.runtime.watchdog import Watchdog

REPLACE, CLIENT, APPLICATION = UncaughtExceptionResponse
FAILED = StreamsError("KSTREAM-REDUCE-1 failed on a record: ValueError: 13.")


# The handler that counts.


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, as the first element."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_max_failures_gives_a_query_so_many_tries_and_then_ends_it(clock: list[float]) -> None:
    handler = MaxFailures(2, "1 minute")
    assert [handler(FAILED) for _ in range(3)] == [REPLACE, REPLACE, CLIENT]


def test_max_failures_forgets_what_is_longer_ago_than_its_time(clock: list[float]) -> None:
    handler = MaxFailures(1, "1 minute")
    assert handler(FAILED) is REPLACE
    clock[0] = 60
    assert handler(FAILED) is REPLACE
    clock[0] = 119
    assert handler(FAILED) is CLIENT


def test_max_failures_of_zero_ends_at_the_first_failure() -> None:
    assert MaxFailures(0, "1 hour")(FAILED) is CLIENT


@pytest.mark.parametrize("count", [-1, 1.5, True, "3"])
def test_max_failures_needs_a_whole_number(count: Any) -> None:
    with pytest.raises(ValueError, match="a whole number from 0 up"):
        MaxFailures(count, "1 minute")


def test_max_failures_needs_a_time_that_is_longer_than_nothing() -> None:
    with pytest.raises(ValueError, match="max_time_interval is the time in which failures are counted, not 0"):
        MaxFailures(3, 0)


def test_max_failures_needs_a_duration() -> None:
    with pytest.raises(ValueError, match="max_time_interval 'soon' is not a duration"):
        MaxFailures(3, "soon")


# Handlers that are wrong.


@pytest.mark.parametrize("raised", [KeyError("who"), SystemExit(1)])
def test_a_handler_that_raises_shuts_the_client_down_and_both_errors_are_told(raised: BaseException) -> None:
    def broken(failure: StreamsError) -> UncaughtExceptionResponse:
        raise raised

    answer, told = ask(broken, FAILED)
    assert answer is CLIENT
    said = f"{str(FAILED).rstrip('.')}. The uncaught exception handler had no answer to that: it raised "
    assert str(told).startswith(said + type(raised).__name__)
    assert told.__cause__ is raised


@pytest.mark.parametrize("given", [None, True, "REPLACE_THREAD"])
def test_a_handler_that_returns_something_else_shuts_the_client_down(given: Any) -> None:
    answer, told = ask(lambda failure: given, FAILED)
    assert answer is CLIENT
    assert f"it returned {given!r}, which is no UncaughtExceptionResponse. Let it return" in str(told)


def test_a_handler_has_to_be_a_function() -> None:
    with pytest.raises(StreamsError, match="is a function that takes the error, not <UncaughtExc"):
        check_handler(REPLACE)


# The supervisor, with queries that fail when a test says so.


class FakeQuery:
    """A Spark query whose end the test decides."""

    lastProgress = None  # noqa: N815  Spark's name
    # watchers ask how far it has come
    _jsq = SimpleNamespace(lastProgress=lambda: None, recentProgress=lambda: ())

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._failure: Exception | None = None

    @property
    def isActive(self) -> bool:  # noqa: N802
        return not self._ended.is_set()

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802
        ended = self._ended.wait(timeout)
        if self._failure is not None:
            raise self._failure
        return ended

    def fail(self, failure: str | Exception) -> None:
        self._failure = StreamingQueryException(failure) if isinstance(failure, str) else failure
        self._ended.set()

    def stop(self) -> None:
        self._ended.set()


class Application:
    """A supervisor with one query, on a broker that answers when the test lets it."""

    def __init__(self, plan_: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers, self.started = threading.Event(), list[FakeQuery]()
        self.answers.set()
        monkeypatch.setattr(outages, "answers", lambda servers, timeout: self.answers.is_set())
        monkeypatch.setattr(outages, "EVERY_SECONDS", 0.02)
        monkeypatch.setattr(queries, "FIRST_WAIT", 0.01)
        monkeypatch.setattr(Metrics, "update", lambda metrics: metrics)
        self.states, self.moves, self.why = StateMachine(), list[str](), list[str]()
        self.states.add_listener(lambda new, old: self.moves.append(new.name))
        losses = DataLoss("shop", Path("nowhere"), "stop")
        self.told = list[str]()
        self.supervisor = Supervisor(
            "shop", self.states, "somewhere:9092", 400, self.why.append, losses, self.told.append
        )
        self._plan, self.silent = plan_, 0
        """How many starts of a query find that no broker answers."""

    def start(self, handler: Callable[[StreamsError], Any] | None = None) -> None:
        if handler is not None:
            self.supervisor.handler = handler
        self.states.hold(STARTING)
        self.supervisor.broker.start()
        self.supervisor.watch(RunningQuery(self._plan, self._start_query, Path("nowhere")))
        self.states.release(STARTING)
        self.moves.clear()

    def _start_query(self, producers: str, goes_on: bool) -> StreamingQuery:
        if self.silent:
            self.silent -= 1
            raise BrokerError("No Kafka broker answers at somewhere:9092.")
        self.started.append(FakeQuery())
        return self.started[-1]  # type: ignore[return-value]


@pytest.fixture
def application(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Application]:
    builder = StreamsBuilder()
    builder.stream("in", value=Serdes.long()).to("out")
    made = Application(plan(builder.build(), "shop")[0], monkeypatch)
    yield made
    made.supervisor.stop()


def until(done: Callable[[], Any]) -> bool:
    deadline = time.monotonic() + 5
    while not done() and time.monotonic() < deadline:
        time.sleep(0.005)
    return bool(done())


@pytest.mark.parametrize(("answers", "said"), [(True, "end a moment after this call"), (False, "the broker is back")])
def test_queries_that_have_no_time_to_end_are_told_with_the_reason(
    application: Application, caplog: pytest.LogCaptureFixture, answers: bool, said: str
) -> None:
    application.start()
    if not answers:
        application.answers.clear()
        assert until(lambda: application.supervisor.broker.is_away)
    ending = threading.Event()
    application.started[0].stop = lambda: ending.wait(5)  # type: ignore[method-assign,assignment]
    assert not application.supervisor.stop(0)
    ending.set()
    assert said in caplog.text


@pytest.mark.spark
def test_a_query_that_is_replaced_runs_again_and_the_state_shows_it(
    application: Application, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def replace(failure: StreamsError) -> UncaughtExceptionResponse:
        told.append(str(failure))
        return REPLACE

    application.start(replace)
    application.started[0].fail("[DIVIDE_BY_ZERO] Division by zero.")
    assert until(lambda: len(application.started) == 2 and application.moves == ["REBALANCING", "RUNNING"])
    assert "Division by zero" in told[0]
    assert "KSTREAM-SOURCE" in told[0]
    assert application.supervisor.queries[0].restarts == 1
    assert "sub-topology 0 runs again from its last whole micro-batch in 0.0 s. It failed: " in caplog.text


@pytest.mark.spark
def test_a_python_process_that_started_too_slowly_is_tried_again_but_not_for_ever(
    application: Application, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(application.supervisor._stopping, "wait", lambda seconds: False)
    application.start()
    for number in range(1, 7):
        assert until(lambda number=number: len(application.started) == number)  # type: ignore[misc]
        application.started[-1].fail("org.apache.spark.SparkException: Python worker failed to connect back.")
    assert until(lambda: application.states.state is State.ERROR)
    assert application.supervisor.queries[0].restarts == 5
    assert "this machine is so busy" in caplog.text


def test_the_failures_are_those_of_queries_that_wait_to_run_again_or_that_of_the_application(
    application: Application,
) -> None:
    supervisor, failure = application.supervisor, StreamsError("no")
    active: list[Any] = [
        SimpleNamespace(last_failure=StreamsError("it runs again"), query=SimpleNamespace(isActive=True)),
        SimpleNamespace(last_failure=None, query=SimpleNamespace(isActive=False)),
    ]
    waiting: Any = SimpleNamespace(last_failure=failure, query=SimpleNamespace(isActive=False))
    supervisor.queries = [*active, waiting]
    assert supervisor.failures == [failure]
    supervisor.queries, supervisor.failure = active, StreamsError("for good")
    assert supervisor.failures == [supervisor.failure]
    supervisor.queries = []


@pytest.mark.spark
@pytest.mark.parametrize("answer", [CLIENT, APPLICATION, None])
def test_any_other_answer_ends_the_application(
    application: Application, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    application.start(lambda failure: answer)
    application.started[0].fail("[DIVIDE_BY_ZERO] Division by zero.")
    assert until(lambda: application.moves == ["PENDING_ERROR", "ERROR"])
    assert len(application.started) == 1
    assert "Division by zero" in application.why[0]
    assert application.told == (application.why if answer is APPLICATION else [])
    with pytest.raises(StreamsError, match="Division by zero"):
        application.supervisor.raise_failure()
    assert until(lambda: any(record.levelno == logging.ERROR for record in caplog.records))


@pytest.mark.spark
@pytest.mark.parametrize("answer", [REPLACE, CLIENT, APPLICATION])
def test_a_global_store_that_fails_ends_the_application_and_the_handler_is_asked(
    application: Application, answer: UncaughtExceptionResponse, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[StreamsError] = []

    def handle(failure: StreamsError) -> UncaughtExceptionResponse:
        told.append(failure)
        return answer

    application.start(handle)
    application.supervisor.global_store_failed(FAILED)
    assert application.moves == ["PENDING_ERROR", "ERROR"]
    assert (told, application.supervisor.failure) == ([FAILED], FAILED)
    assert application.told == ([str(FAILED)] if answer is APPLICATION else [])
    assert ("REPLACE_THREAD cannot replace what fills its global stores" in caplog.text) is (answer is REPLACE)


@pytest.mark.spark
@pytest.mark.parametrize(
    "lost", [Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError(111, "Connection refused")]
)
def test_an_application_whose_java_has_ended_fails_with_a_sentence_whatever_its_handler_says(
    application: Application, lost: Exception
) -> None:
    told: list[str] = []

    def replace(failure: StreamsError) -> UncaughtExceptionResponse:
        told.append(str(failure))
        return REPLACE

    application.start(replace)
    application.started[0].fail(lost)
    assert until(lambda: application.moves == ["PENDING_ERROR", "ERROR"])
    assert len(application.started) == 1
    assert told == application.why
    assert told[0].startswith("Spark's Java does not answer any more")
    assert "a new KafkaStreams starts another Java" in told[0]
    with pytest.raises(StreamsError, match=r"^Spark's Java does not"), application.supervisor.calls_of_spark():
        raise lost


@pytest.mark.spark
def test_a_query_that_spark_ends_by_itself_ends_the_application(application: Application) -> None:
    application.start()
    application.started[0].stop()
    assert until(lambda: application.moves == ["PENDING_ERROR", "ERROR"])
    assert application.why[0].startswith("Spark ended sub-topology 0 of 'shop', and nobody has closed the application")


@pytest.mark.spark
@pytest.mark.parametrize(
    "said",
    [
        "Job 3 cancelled because SparkContext was shut down",
        "SparkContext has been shutdown",
        "Cannot call methods on a stopped SparkContext.",
    ],
)
def test_an_application_whose_session_is_stopped_hears_that_it_has_to_be_closed_first(
    application: Application, said: str
) -> None:
    sentence = "The Spark session of 'shop' was stopped, and nobody has closed the application. Close it before"
    application.start()
    with pytest.raises(StreamsError, match=f"^{sentence}"), application.supervisor.calls_of_spark():
        raise Py4JError(said)
    application.started[0].fail(said)
    assert until(lambda: application.moves == ["PENDING_ERROR", "ERROR"])
    assert application.why[0].startswith(sentence)


@pytest.mark.spark
def test_a_session_that_is_stopped_while_no_query_has_work_ends_the_application(application: Application) -> None:
    application.start()
    application.supervisor.part_died(SESSION)
    assert application.moves == ["PENDING_ERROR", "ERROR"]
    assert application.why[0].startswith("The Spark session of 'shop' was stopped, and nobody has closed")


@pytest.mark.spark
def test_an_application_whose_handler_is_to_end_the_program_says_why_it_has_stopped(application: Application) -> None:
    application.start(lambda failure: sys.exit(1))
    application.started[0].fail("[DIVIDE_BY_ZERO] Division by zero")
    assert until(lambda: application.moves == ["PENDING_ERROR", "ERROR"])
    assert "[DIVIDE_BY_ZERO] Division by zero. The uncaught exception handler had no answer" in application.why[0]
    assert "it raised SystemExit: 1." in application.why[0]


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_application_whose_handler_ends_its_thread_fails(application: Application) -> None:
    def end(failure: StreamsError) -> UncaughtExceptionResponse:
        raise KeyboardInterrupt  # nothing here may keep that back

    watchdog = Watchdog(application.supervisor.parts, application.supervisor.part_died)
    application.start(end)
    assert set(application.supervisor.parts().values()) == {True}
    watchdog.start()
    application.started[0].fail("[DIVIDE_BY_ZERO] Division by zero.")
    assert until(lambda: application.moves == ["PENDING_ERROR", "ERROR"])
    assert application.why[0].startswith("The thread of sub-topology 0 of 'shop' has ended, though nobody stopped it")
    watchdog.stop()


@pytest.mark.spark
@pytest.mark.parametrize(
    "said",
    [
        "org.apache.kafka.common.errors.TimeoutException: Expiring 17 record(s) for out-0",
        "Timed out waiting for a node assignment. Call: listNodes",
        "Timed out waiting to send the call. Call: listOffsets",
        "Call(callName=describeTopics, deadlineMs=1795429000000, tries=4) timed out at 1795429000001 after 4 tries",
    ],
)
def test_a_query_that_fails_while_the_broker_is_away_waits_for_it_and_no_handler_is_asked(
    said: str, application: Application
) -> None:
    asked: list[StreamsError] = []
    application.start(asked.append)
    application.answers.clear()
    assert until(lambda: application.states.state is State.REBALANCING)
    application.started[0].fail(said)
    time.sleep(0.1)
    assert len(application.started) == 1
    application.answers.set()
    assert until(lambda: len(application.started) == 2 and application.moves == ["REBALANCING", "RUNNING"])
    assert not asked


@pytest.mark.spark
def test_a_query_that_finds_no_broker_when_it_begins_again_waits_for_it_and_no_handler_is_asked(
    application: Application,
) -> None:
    asked: list[StreamsError] = []
    application.start(asked.append)
    application.answers.clear()
    assert until(lambda: application.states.state is State.REBALANCING)
    application.silent = 2
    application.started[0].fail("Timed out waiting for a node assignment. Call: listNodes")
    application.answers.set()
    assert until(lambda: len(application.started) == 2 and application.states.state is State.RUNNING)
    assert (application.silent, asked) == (0, [])


@pytest.mark.spark
def test_a_query_that_misses_records_while_the_broker_is_away_asks_for_them_again_when_it_is_back(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[StreamsError] = []
    monkeypatch.setattr(application.supervisor._losses, "is_behind", lambda *given: raises_broker_error())
    application.start(asked.append)
    application.answers.clear()
    assert until(lambda: application.states.state is State.REBALANCING)
    application.started[0].fail("[KAFKA_DATA_LOSS] Some data may have been lost.")
    application.answers.set()
    assert until(lambda: len(application.started) == 2 and application.states.state is State.RUNNING)
    assert asked == []


def raises_broker_error() -> bool:
    raise BrokerError("No Kafka broker answers at somewhere:9092.")


@pytest.mark.spark
def test_a_timeout_of_a_broker_that_is_there_is_a_failure_like_any_other(application: Application) -> None:
    asked: list[StreamsError] = []
    application.start(asked.append)
    application.started[0].fail(
        "org.apache.kafka.common.errors.TimeoutException: Topic out not present in metadata after 60000 ms."
    )
    assert until(lambda: application.states.state is State.ERROR)
    assert "a record could not be written to topic 'out'" in str(asked[0])


@pytest.mark.spark
def test_a_broker_that_is_away_for_longer_than_task_timeout_ends_the_application(application: Application) -> None:
    application.start()
    application.answers.clear()
    assert until(lambda: application.moves == ["REBALANCING", "PENDING_ERROR", "ERROR"])
    assert "The broker at somewhere:9092 has not answered for " in application.why[0]
    assert "longer than task_timeout allows (400 ms). Bring it back" in application.why[0]


@pytest.mark.spark
def test_a_handler_can_wait_for_a_broker_once_more(application: Application) -> None:
    asked: list[StreamsError] = []

    def replace(failure: StreamsError) -> UncaughtExceptionResponse:
        asked.append(failure)
        return REPLACE

    application.start(replace)
    application.answers.clear()
    assert until(lambda: len(asked) == 2)
    application.answers.set()
    assert until(lambda: application.states.state is State.RUNNING)


@pytest.mark.spark
def test_a_query_that_is_about_to_run_again_stays_stopped_when_the_application_closes(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "FIRST_WAIT", 0.3)
    application.start(lambda failure: REPLACE)
    application.started[0].fail("no")
    assert until(lambda: application.states.state is State.REBALANCING)
    application.supervisor.stop()
    time.sleep(0.6)
    assert len(application.started) == 1


@pytest.mark.spark
def test_a_query_does_not_run_again_after_its_handler_has_closed_the_application(
    application: Application, caplog: pytest.LogCaptureFixture
) -> None:
    asked = threading.Event()

    def close_and_replace(failure: StreamsError) -> UncaughtExceptionResponse:
        application.supervisor.stop()
        asked.set()
        return REPLACE

    application.start(close_and_replace)
    application.started[0].fail("no")
    assert asked.wait(5)
    assert until(lambda: not application.supervisor._watchers[0][1].is_alive())
    assert len(application.started) == 1
    assert "runs again" not in caplog.text


@pytest.mark.spark
def test_a_query_waits_twice_as_long_after_each_failure_until_a_micro_batch_was_done(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "FIRST_WAIT", 0.5)
    application.start()
    query = application.supervisor.queries[0]
    assert [query.next_wait() for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    query.metrics.batches += 1
    assert [query.next_wait() for _ in range(2)] == [0.5, 1]


@pytest.mark.spark
def test_a_query_that_starts_while_another_one_ends_the_application_is_stopped_too(application: Application) -> None:
    application.start()
    late = RunningQuery(application._plan, application._start_query, Path("nowhere"))  # it takes seconds to start
    application.started[0].fail("[DIVIDE_BY_ZERO] Division by zero.")
    assert until(lambda: application.states.state is State.ERROR)
    application.supervisor.watch(late)
    assert not application.started[1].isActive
    assert late in application.supervisor.queries


@pytest.mark.spark
def test_a_micro_batch_that_took_too_long_for_a_transaction_is_remembered_before_the_handler_is_asked(
    application: Application, tmp_path: Path
) -> None:
    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "sources" / "0" / "0").write_text('v1\n{"in":{"0":100}}')
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":0}\n{"in":{"0":1100}}')
    noted: list[int | None] = []

    def handler(failure: StreamsError) -> UncaughtExceptionResponse:
        noted.append(Checkpoint(tmp_path).most_records)
        assert "a micro-batch takes half as many records at most" in str(failure)
        return CLIENT

    application.start(handler)
    application.supervisor.queries[0].checkpoint = tmp_path
    application.started[0].fail(
        "TransactionTimedOut: the transaction was open for 301000 ms, and the broker has aborted it"
    )
    assert until(lambda: application.states.state is State.ERROR)
    assert noted == [500]
