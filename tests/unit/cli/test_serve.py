"""`serve`: what it says to a name on the command line that does not lead to what it needs."""

from pathlib import Path

import pytest

from streamskit.cli import serve
from streamskit.cli.serve import _imported
from streamskit.common.errors import StreamsError
from streamskit.environment import spark_java
from streamskit.queries.rest_service import RestService

PROGRAM = """
from streamskit import RestService, StreamsError
service = RestService()
def make(): return RestService()
def wants(url, token): return RestService()
def fails(): return {}["songs"]
def refuses(): raise StreamsError("The shop is closed.")
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a program that works, and two that cannot be imported."""
    (tmp_path / "shop_of_serve.py").write_text(PROGRAM)
    (tmp_path / "broken_of_serve.py").write_text("price = 1 / 0")
    (tmp_path / "torn_of_serve.py").write_text("def make(:")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_that_there_is_not_is_refused_by_its_option(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        serve.main(["x", "--bootstrap-servers=localhost:9", f"--port={port}"])
    assert f"--port is {port}: give a number from 1 to 65535, or 0 for a free one." in capsys.readouterr().err


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("json:loads", "json:loads cannot be called: missing a required argument: 's'. Name a function that needs no"),
        ("shop_of_serve:wants", "cannot be called: missing a required argument: 'url'"),
        ("shop_of_serve:fails", r"calling fails\(\) raised KeyError: 'songs' \(.*shop_of_serve.py, line 6\)\. Correct"),
        ("shop_of_serve:refuses", r"^The shop is closed\.$"),
        (
            "broken_of_serve:x",
            r"importing broken_of_serve raised ZeroDivisionError: .*broken_of_serve.py, line 1\)",
        ),
        ("torn_of_serve:x", r"importing torn_of_serve raised SyntaxError: .*\(torn_of_serve.py, line 1\)\. Correct"),
        ("shop_of_serve:nothing", "names nothing that can be imported"),
        ("nowhere_of_serve:x", "names nothing that can be imported"),
        ("json:dumps.x", "names nothing that can be imported"),
        ("builtins:dict", "is a dict and no RestService"),
    ],
)
def test_a_name_that_leads_nowhere_is_a_sentence(named: str, says: str) -> None:
    with pytest.raises(StreamsError, match=says):
        _imported("--rest-service", named, RestService)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", ["service", "make"])
def test_an_object_and_a_function_that_makes_it_are_taken(name: str) -> None:
    assert isinstance(_imported("--rest-service", f"shop_of_serve:{name}", RestService), RestService)


@pytest.mark.usefixtures("programs")
def test_spark_has_ended_before_queries_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def server(*_: object, **__: object) -> None:
        done.append("server")
        raise StreamsError("That is enough.")

    monkeypatch.setattr(serve, "_catalogue", lambda _: done.append("catalogue"))
    monkeypatch.setattr(spark_java, "end", lambda: done.append("end of Spark"))
    monkeypatch.setattr(serve, "QueryServer", server)
    with pytest.raises(StreamsError, match=r"That is enough\."):
        serve.main(["songs", "--bootstrap-servers=127.0.0.1:9", "--topology=a:b"])
    assert done == ["catalogue", "end of Spark", "server"]
