"""Calls of Spark that are interrupted, as by Ctrl-C or a notebook's stop button."""

import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows interrupts no call that waits outside of Python"),
]


@pytest.fixture
def python_s_own_interrupt() -> Iterator[None]:
    """Ctrl-C as Python and notebooks have it; Spark's own handler would end all its jobs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("python_s_own_interrupt")
def test_an_interrupted_call_disturbs_neither_the_next_one_nor_those_of_other_threads(spark: SparkSession) -> None:
    java: Any = spark.sparkContext._jvm.java.lang  # type: ignore[union-attr]
    client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    main, is_over = threading.main_thread().ident or 0, threading.Event()
    ready, kept = [threading.Event(), threading.Event()], list[bool]()

    def call() -> None:
        java.Thread.sleep(1)
        before = client.get_thread_connection()
        ready[0].set()
        java.Thread.sleep(3_000)
        kept.append(client.get_thread_connection() is before)  # a call whose connection was closed is made again

    def be_idle() -> None:
        java.Thread.sleep(1)
        ready[1].set()
        is_over.wait(60)

    others = [threading.Thread(target=each) for each in (call, be_idle)]
    for each in others:
        each.start()
    assert all(each.wait(20) for each in ready), "the other threads have not called Spark"
    threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        java.Thread.sleep(60_000)
    assert java.Integer.parseInt("7") == 7
    is_over.set()
    for each in others:
        each.join(20)
    assert kept == [True]
