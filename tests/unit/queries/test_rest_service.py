"""Routes of an application's own: they run where their key is, with what is there, and say what went wrong."""

import threading
from enum import StrEnum
from typing import Any

import pytest
from fastapi import HTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from streamskit import KafkaStreams, RestCall, RestService, Serdes, StreamsBuilder, StreamsError
from streamskit.common.errors import StateStoreMigratedError
from streamskit.serdes import SerdeError
from streamskit.state.stores import Store
from tests.unit.queries.rest_harness import ALL_ACTIVE, PARTITIONS, STORES, Cluster, cluster, long, partition_of

TWO = ({0: "active", 1: "active"}, {2: "active", 3: "active"})


def key_of(partition: int) -> str:
    """Return a key that is in a partition."""
    return next(chr(code) for code in range(97, 123) if partition_of(bytes([code])) == partition)


def filled(made: Cluster) -> Cluster:
    for partition in range(PARTITIONS):
        made.group.put("counts", key_of(partition).encode(), long(partition))
        made.group.put("totals", key_of(partition).encode(), long(partition))
    made.group.put("numbers", long(7), b"\x40\x04\0\0\0\0\0\0")
    made.group.put("everywhere", b"a", b"Anna")
    return made


@pytest.fixture
def service() -> RestService:
    made = RestService()

    @made.get("/double/{name}", store="counts", key="{name}")
    async def double(call: RestCall, name: str, times: int = 2) -> Any:
        """Twice a count, or more."""
        count = call.store("counts").get(name)
        return None if count is None else {"at": str(call.here), "role": call.role, "value": count * times}

    @made.get("/sum/{one}/{other}", store="counts", key="{one}")
    async def total(call: RestCall, one: str, other: str) -> int:
        here, there = call.store("counts").get(one), await call.ask("double", other, times=1)
        return int(here + there["value"])

    @made.get("/page")
    def page(call: RestCall) -> HTMLResponse:
        return HTMLResponse(f"<p>{call.here}, {threading.current_thread().name}")

    return made


def test_a_call_runs_at_the_instance_that_has_its_key_whichever_is_asked(service: RestService) -> None:
    with cluster(*TWO, service=service) as made:
        filled(made)
        for partition, owner in ((0, 0), (1, 0), (2, 1), (3, 1)):
            expected = {"at": str(made.instances[owner].here), "role": "active", "value": 2 * partition}
            for asked in (0, 1):
                answer = made.get(f"/double/{key_of(partition)}", asked)
                assert answer.json() == expected
                assert answer.headers["streamskit-answered-by"] == f"{made.instances[owner].here} active"


def test_requests_between_instances_are_signed_with_the_token_and_a_client_without_it_is_refused(
    service: RestService,
) -> None:
    with cluster(*TWO, service=service, token="secret") as made:
        filled(made)
        assert made.get(f"/double/{key_of(3)}").json()["value"] == 6
        assert made.get(f"/sum/{key_of(3)}/{key_of(1)}").json() == 4
        made.http.headers.pop("authorization")
        forged = {"streamskit-application": "app", "streamskit-partitions": "3"}
        for headers in ({}, forged):
            assert made.get(f"/double/{key_of(3)}", 1, **headers).status_code == 401


def test_a_function_asks_other_routes_at_whichever_instance_has_their_keys(service: RestService) -> None:
    with cluster(*TWO, service=service) as made:
        filled(made)
        for one in range(PARTITIONS):
            for other in range(PARTITIONS):
                assert made.get(f"/sum/{key_of(one)}/{key_of(other)}").json() == one + other


def test_a_standby_runs_the_call_while_the_active_instance_is_away(service: RestService) -> None:
    with cluster({0: "active", 1: "active"}, {2: "active", 3: "active"}, {2: "standby"}, service=service) as made:
        filled(made)
        made.servers[1].stop()
        standby = made.instances[2].here
        for asked in (0, 2):
            answer = made.get(f"/double/{key_of(2)}", asked)
            assert answer.json() == {"at": str(standby), "role": "standby", "value": 4}
        gone = made.get(f"/double/{key_of(3)}")
        assert (gone.status_code, gone.headers["retry-after"]) == (503, "1")
        assert gone.json()["error"] == (
            f"No instance can answer for partition 3 of store 'counts'. {made.instances[1].here} cannot be reached."
        )


def test_a_store_that_is_being_restored_gives_no_answer(service: RestService) -> None:
    with cluster(*TWO, service=service) as made:
        filled(made).instances[1].restoring = {2}
        for asked in (0, 1):
            answer = made.get(f"/double/{key_of(2)}", asked)
            assert answer.status_code == 503
            assert "is being restored" in answer.json()["error"]


def test_a_call_does_not_run_where_its_key_was_or_is_not_yet_whatever_its_function_reads() -> None:
    service = RestService()

    @service.get("/where/{name}", store="counts", key="{name}")
    async def where(call: RestCall, name: str) -> str:
        return str(call.here)

    with cluster(*TWO, service=service) as made:
        there = made.instances[1]
        assert made.get(f"/where/{key_of(2)}").json() == str(there.here)
        there.restoring = {2}
        del there.roles[3]  # and the others have not heard of it yet
        for partition, why in ((2, "is being restored"), (3, f"is not at {there.here}")):
            for asked in (0, 1):
                answer = made.get(f"/where/{key_of(partition)}", asked)
                assert answer.status_code == 503
                assert why in answer.json()["error"]


def test_an_instance_without_the_route_is_not_taken_for_one_without_the_key(service: RestService) -> None:
    with cluster(*TWO, service=service) as made, cluster(*TWO) as older:
        filled(made)
        made.group.hosts[3] = older.group.hosts[3]
        answer = made.get(f"/double/{key_of(3)}")
        assert answer.status_code == 503
        assert answer.json()["error"].endswith(f"{older.instances[1].here} says: There is nothing at this path.")


def test_nothing_returned_is_a_404_also_from_another_instance(service: RestService) -> None:
    with cluster(*TWO, service=service) as made:
        filled(made)
        nobody = key_of(3) + "dddd"
        for asked in (0, 1):
            answer = made.get(f"/double/{nobody}", asked)
            assert (answer.status_code, answer.json()["error"]) == (404, f"There is nothing for /double/{nobody}.")


def test_parameters_are_read_as_they_are_annotated_and_unknown_ones_refused(service: RestService) -> None:
    with cluster(*TWO, service=service) as made:
        filled(made)
        assert made.get(f"/double/{key_of(3)}?times=5").json()["value"] == 15
        for query, says in (("times=x", "Parameter 'times'"), ("time=5", "no parameter 'time' here. It takes times.")):
            answer = made.get(f"/double/{key_of(3)}?{query}")
            assert answer.status_code == 400
            assert says in f"{answer.json()['error']} {answer.json()['what_to_do']}"


def test_a_parameter_without_a_default_is_asked_for() -> None:
    service = RestService()

    @service.get("/most")
    async def most(call: RestCall, rows: int) -> int:
        return rows

    with cluster(ALL_ACTIVE, service=service) as made:
        assert made.get("/most?rows=3").json() == 3
        answer = made.get("/most")
        assert (answer.status_code, answer.json()["error"]) == (400, "Parameter 'rows': Field required.")


def test_keys_with_a_slash_and_keys_that_are_numbers_find_their_instance() -> None:
    service = RestService()

    @service.get("/number/{key}", store="numbers", key="{key}")
    async def number(call: RestCall, key: int) -> Any:
        return [str(call.here), call.store("numbers").get(key)]

    @service.get("/of/{name}", store="counts", key="{name}")
    async def count(call: RestCall, name: str) -> Any:
        return [str(call.here), call.store("counts").get(name)]

    @service.get("/asked/{name}")
    async def asked(call: RestCall, name: str) -> Any:
        return await call.ask("of", name)

    with cluster(*TWO, service=service) as made:
        filled(made).group.put("counts", b"a/b", long(11))
        owner = made.group.hosts[partition_of(long(7))].active
        assert made.get("/number/7").json() == [str(owner), 2.5]
        assert made.get("/number/seven").status_code == 400
        owner = made.group.hosts[partition_of(b"a/b")].active
        for instance in (0, 1):
            for path in ("of", "asked"):
                assert made.get(f"/{path}/a%2Fb", instance).json() == [str(owner), 11]


def test_a_fixed_key_and_a_store_that_every_instance_has_whole() -> None:
    service = RestService()

    @service.get("/first", store="counts", key="a")
    async def first(call: RestCall) -> Any:
        return str(call.here)

    @service.get("/who/{name}", store="everywhere", key="{name}")
    async def who(call: RestCall, name: str) -> Any:
        return [str(call.here), call.store("everywhere").get(name)]

    with cluster(*TWO, service=service) as made:
        filled(made)
        owner = str(made.group.hosts[partition_of(b"a")].active)
        for asked in (0, 1):
            assert made.get("/first", asked).json() == owner
            assert made.get("/who/a", asked).json() == [str(made.instances[asked].here), "Anna"]


def test_lists_have_the_rows_that_are_here_so_that_no_row_comes_twice() -> None:
    service = RestService()

    @service.get("/here")
    def here(call: RestCall) -> list[str]:
        return [key for key, _ in call.store("counts").all()]

    with cluster({0: "active", 1: "active", 2: "standby"}, {2: "active", 3: "active"}, service=service) as made:
        filled(made)
        assert sorted(made.get("/here", 0).json() + made.get("/here", 1).json()) == sorted(map(key_of, range(4)))


def test_a_function_that_fails_says_so_and_the_next_call_is_answered(
    service: RestService, caplog: pytest.LogCaptureFixture
) -> None:
    @service.get("/broken/{name}", store="counts", key="{name}")
    async def broken(call: RestCall, name: str) -> Any:
        return dict[str, int]()["plays"]

    @service.get("/lost")
    async def lost(call: RestCall) -> Any:
        return call.store("nothing").get("a")

    @service.get("/elsewhere")
    async def elsewhere(call: RestCall) -> Any:
        return await call.ask("dubble", "a")

    with cluster(*TWO, service=service) as made:
        filled(made)
        answer = made.get(f"/broken/{key_of(3)}")
        assert answer.status_code == 500
        assert answer.json()["error"] == f"broken() has failed at {made.instances[1].here}: KeyError: 'plays'"
        assert "which answers /broken/{name}, has failed" in caplog.text
        assert made.get("/lost").status_code == 500
        assert "lost() has failed" in made.get("/lost").json()["error"]
        assert made.get("/elsewhere").json()["error"] == "/dubble/a: There is nothing at this path."
        assert made.get(f"/double/{key_of(3)}").json()["value"] == 6


def test_a_plain_function_runs_in_a_thread_and_may_send_a_page(service: RestService) -> None:
    with cluster(ALL_ACTIVE, service=service) as made:
        answer = made.get("/page")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.text.startswith(f"<p>{made.instances[0].here}, ")
        assert "REST" not in answer.text  # the thread that serves is not held up


def test_a_function_asks_built_in_routes_and_none_that_never_ends() -> None:
    service = RestService()

    @service.get("/of/{name}")
    async def of(call: RestCall, name: str) -> Any:
        row = await call.ask("state", "keyvalue", "counts", name)
        return None if row is None else row["value"]

    @service.get("/follow")
    async def follow(call: RestCall) -> Any:
        return await call.ask("state", "stream", "counts")

    with cluster(*TWO, service=service) as made:
        filled(made)
        assert [made.get(f"/of/{key_of(number)}").json() for number in range(4)] == [0, 1, 2, 3]
        assert made.get("/of/nobody").status_code == 404
        assert "never ends" in made.get("/follow").json()["error"]


def test_the_page_of_the_api_lists_the_routes_with_their_parameters(service: RestService) -> None:
    with cluster(ALL_ACTIVE, service=service) as made:
        paths = made.get("/openapi.json").json()["paths"]
        listed = paths["/double/{name}"]["get"]
        assert listed["description"] == "Twice a count, or more."
        assert [(each["name"], each["in"]) for each in listed["parameters"]] == [("name", "path"), ("times", "query")]


@pytest.mark.parametrize(
    ("path", "where", "says"),
    [
        ("/state/mine", {}, "begins with / and with none of these, which are taken: /state, /health"),
        ("mine", {}, "needs a path that begins with /"),
        ("/twice", {}, "The route '/twice' of one() is there twice"),
        ("/of/{name}/now", {}, "The route '/of/{name}/now' of one() is there twice"),
        ("/mine/{name}", {"store": "counts"}, "needs both store= and key=, or neither"),
        ("/mine/{name}", {"store": "counts", "key": "{nam}"}, "has no parameter {nam} for its key '{nam}'"),
        ("/mine/{other}", {}, "has a parameter {other} that the function does not take"),
        ("/gr\u00f6\u00dfe/{name}", {}, "would never be found: a URL has letters with accents, blanks and the like"),
        ("/two words/{name}", {}, "would never be found"),
        ("/mine/{name", {}, "would never be found"),
    ],
)
def test_a_route_that_does_not_fit_is_refused_where_it_is_written(path: str, where: dict[str, str], says: str) -> None:
    service = RestService()

    async def one(call: RestCall, name: str = "") -> Any:
        return name

    async def other(call: RestCall, key: str) -> Any:
        return key

    service.get("/twice")(one)
    service.get("/of/{key}/now")(other)
    with pytest.raises(StreamsError) as refused:
        service.get(path, **where)(one)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("store", "says"),
    [("count", "which 'app' does not have; it has: blobs, counts"), ("totals", "any instance may have that key")],
)
def test_a_route_to_a_store_that_routes_nothing_is_refused_at_the_start(store: str, says: str) -> None:
    service = RestService()

    @service.get("/of/{name}", store=store, key="{name}")
    async def of(call: RestCall, name: str) -> Any:
        return name

    with pytest.raises(StreamsError, match=says), cluster(ALL_ACTIVE, service=service):
        pass


@pytest.mark.columns
@pytest.mark.usefixtures("spark")
def test_routes_need_an_address() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    with pytest.raises(StreamsError, match="rest_service has routes, and nothing would serve them"):
        KafkaStreams(builder.build(), "app", "b:9092", rest_service=RestService())


REFUSALS: list[tuple[Exception, int, str]] = [
    (HTTPException(400, "That is no genre."), 400, "That is no genre."),
    (HTTPException(404, "That genre is gone."), 404, "That genre is gone."),
    (StreamsError("The shop is closed."), 503, "The shop is closed."),
    (SerdeError("It is no long."), 500, "A row cannot be read: It is no long."),
]


@pytest.mark.parametrize(("raised", "status", "says"), REFUSALS, ids=lambda it: str(it)[:20])
def test_what_a_function_refuses_is_the_answer_whichever_instance_is_asked_and_it_runs_once(
    raised: Exception, status: int, says: str
) -> None:
    service, ran = RestService(), list[str]()

    @service.get("/refused/{name}", store="counts", key="{name}")
    async def refused(call: RestCall, name: str) -> Any:
        ran.append(f"{call.here} {call.role}")
        raise raised

    both = ({0: "active", 1: "active", 2: "standby"}, {2: "active", 3: "active", 0: "standby"})
    with cluster(*both, service=service) as made:
        owner = f"{made.instances[1].here} active"
        for asked in (0, 1):
            answer = made.get(f"/refused/{key_of(2)}", asked)
            assert (answer.status_code, answer.json()["error"]) == (status, says)
            assert answer.headers["streamskit-answered-by"] == owner
        assert ran == [owner, owner]


def test_a_function_that_finds_a_partition_gone_is_run_by_the_next_instance_that_has_it() -> None:
    service = RestService()

    @service.get("/moved/{name}", store="counts", key="{name}")
    async def moved(call: RestCall, name: str) -> str:
        if call.role == "active":
            raise StateStoreMigratedError("It has just moved.")
        return str(call.here)

    with cluster({0: "active", 1: "active", 2: "standby"}, {2: "active", 3: "active"}, service=service) as made:
        assert made.get(f"/moved/{key_of(2)}").json() == str(made.instances[0].here)


def test_a_response_comes_with_its_headers_from_another_instance_too() -> None:
    service = RestService()

    @service.get("/elsewhere/{name}", store="counts", key="{name}")
    async def elsewhere(call: RestCall, name: str) -> Response:
        return RedirectResponse("/double/a")

    @service.get("/table/{name}", store="counts", key="{name}")
    async def table(call: RestCall, name: str) -> Response:
        named = {"content-disposition": "attachment; filename=a.csv", "cache-control": "max-age=60", "etag": '"1"'}
        made = PlainTextResponse("x,y", headers=named)
        made.set_cookie("one", "1")
        made.set_cookie("two", "2")
        return made

    with cluster(*TWO, service=service) as made:
        for path in ("elsewhere", "table"):
            there, here = (made.get(f"/{path}/{key_of(2)}", asked) for asked in (1, 0))
            assert (here.status_code, here.content) == (there.status_code, there.content)
            ours, theirs = (sorted(each.headers.multi_items()) for each in (here, there))
            assert [one for one in ours if one[0] != "date"] == [one for one in theirs if one[0] != "date"]
        assert made.get(f"/elsewhere/{key_of(2)}").headers["location"] == "/double/a"
        assert made.get(f"/table/{key_of(2)}").headers.get_list("set-cookie") == there.headers.get_list("set-cookie")


def test_a_parameter_that_is_no_text_is_a_key_in_the_form_that_keys_have_in_a_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(STORES, "flags", Store("flags", "key-value", Serdes.boolean(), Serdes.long()))

    class Size(StrEnum):
        SMALL = "a"

    service = RestService()

    @service.get("/flag/{yes}", store="flags", key="{yes}")
    async def flag(call: RestCall, yes: bool) -> Any:
        return call.store("flags").get(yes)

    @service.get("/size/{size}", store="counts", key="{size}")
    async def size(call: RestCall, size: Size) -> Any:
        return call.store("counts").get(size.value)

    with cluster(*TWO, service=service) as made:
        made.group.put("flags", b"\x01", long(7))
        made.group.put("counts", b"a", long(8))
        for asked in (0, 1):
            assert made.get("/flag/true", asked).json() == 7
            assert made.get("/size/a", asked).json() == 8
