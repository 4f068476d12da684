"""`python -m streamskit serve`: an instance of an application that answers queries, in a process of its own."""

import argparse
import importlib
import inspect
import os
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from streamskit.api.streams_config import TOKEN_VARIABLE, StreamsConfig
from streamskit.common.errors import StreamsError
from streamskit.common.json_logs import log_as_json
from streamskit.common.names import own_name
from streamskit.common.paths import application_folder
from streamskit.common.paths import state_dir as project_state_dir
from streamskit.queries import Catalogue
from streamskit.queries.client import QueryClient
from streamskit.queries.metadata import HostInfo
from streamskit.queries.query_server import QueryServer
from streamskit.queries.rest.dashboard_routes import FollowedViews
from streamskit.queries.rest.protocol import DASHBOARD
from streamskit.queries.rest_service import RestService
from streamskit.runtime.topic_watch import TopicWatch
from streamskit.serdes import Serde

LAST_PORT = 65_535


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer queries until told to stop, and return the exit code.

    Raises:
        StreamsError: the instance cannot answer, or stopped by itself.
    """
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if not 0 <= chosen.port <= LAST_PORT:
        parser.error(f"--port is {chosen.port}: give a number from 1 to {LAST_PORT}, or 0 for a free one.")
    chosen.application_id = own_name(chosen.application_id)
    _serve(chosen)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m streamskit serve", description=__doc__)
    parser.add_argument("application_id", help="whose stores to answer for; it was started on this machine before")
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT", help="the Kafka brokers")
    parser.add_argument(
        "--command-config",
        type=Path,
        metavar="FILE",
        help="a properties file with what clients show to a secured cluster, as Kafka's own tools take it",
    )
    parser.add_argument("--host", default="127.0.0.1", help=f"where to answer; any but loopback needs {TOKEN_VARIABLE}")
    parser.add_argument("--port", type=int, default=0, help="0, if not given, takes a free one")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="where to listen, if the others find it elsewhere: behind a proxy",
    )
    parser.add_argument("--standby-replicas", type=int, default=0, metavar="N", help="further copies of each partition")
    parser.add_argument("--session-timeout", default="6 seconds", help="when a silent instance counts as dead")
    parser.add_argument(
        "--ends-with-parent",
        nargs="?",
        type=int,
        const=os.getppid(),
        metavar="PID",
        help="stop when the process that started this ends; its id, for one that may end before this has started",
    )
    parser.add_argument("--in-memory", action="store_true", help="keep no store on the disk")
    parser.add_argument("--state-dir", type=Path, help="the folder for stores on the disk, one for each instance")
    parser.add_argument(
        "--applications", type=Path, help="the state_dir of the application; .streamskit/applications if not given"
    )
    parser.add_argument("--log-json", action="store_true", help="log as JSON, one object a line, to standard error")
    parser.add_argument(
        "--topology",
        metavar="MODULE:NAME",
        help="a topology, or a function that makes it: for one that never ran here, or that has a custom serde",
    )
    parser.add_argument(
        "--serde",
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        help="a custom serde that a store has; repeat the option for each such class",
    )
    parser.add_argument(
        "--rest-service",
        metavar="MODULE:NAME",
        help="a RestService, or a function that makes it: the application's own routes",
    )
    return parser


def _serve(chosen: argparse.Namespace) -> None:
    if chosen.log_json:
        log_as_json()
    config = StreamsConfig(
        chosen.application_id,
        chosen.bootstrap_servers,
        application_server=f"{chosen.host}:{chosen.port}",
        num_standby_replicas=chosen.standby_replicas,
        session_timeout=chosen.session_timeout,
        listen=chosen.listen,
        client_settings=chosen.command_config,
    )
    in_memory, state_dir = chosen.in_memory, chosen.state_dir and chosen.state_dir.expanduser()
    catalogue = _catalogue(chosen)
    service = _imported("--rest-service", chosen.rest_service, RestService) if chosen.rest_service else None
    if chosen.topology is not None:
        from streamskit.environment import spark_java

        spark_java.end()  # queries need none, and it takes more memory than all the rest
    server = QueryServer(
        catalogue,
        config,
        lambda here: None if in_memory else state_dir or _own_folder(config, here),
        service=service,
    )
    server.rest.dashboard = cache(partial(_dashboard, server, config))
    watch = TopicWatch(config.connection, server.look_at_topics)
    told = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: told.set())
    try:
        server.start()
        watch.watch(dict.fromkeys(entry.changelog for entry in catalogue))
        print(f"'{config.application_id}' answers at {server.here.url}/docs; Ctrl-C stops it.", flush=True)
        print(f"A browser sees its stores at {server.rest.address.url}{DASHBOARD}.", flush=True)
        while not told.wait(0.5):
            if chosen.ends_with_parent is not None and os.getppid() != chosen.ends_with_parent:
                return
            if server.instance.stopped:
                raise StreamsError(f"The instance at {server.here} has stopped: {server.instance.stopped}")
    finally:
        watch.stop()
        server.stop()


def _dashboard(server: QueryServer, config: StreamsConfig) -> FollowedViews:
    """Return views of all stores. They take half a second to import, which an instance that nobody watches saves.

    Raises:
        StreamsError: the packages that draw them are not installed.
    """
    try:
        from streamskit.views.views_page import page_of_stores
    except ImportError as failure:
        raise StreamsError(
            f"A dashboard is drawn with packages of the course ({failure}): pip install 'streamskit[course]'."
        ) from failure
    client = QueryClient(server.rest.address.url, token=config.token_text)
    return page_of_stores(config.application_id, client)


def _catalogue(chosen: argparse.Namespace) -> Catalogue:
    if chosen.topology is None:
        own = [_imported("--serde", each, Serde) for each in chosen.serde]
        return Catalogue.load(application_folder(chosen.application_id, chosen.applications), own)
    from streamskit.planning.planner import plan  # Spark is needed for this only
    from streamskit.runtime.own_names import own_topology
    from streamskit.runtime.topics import catalogue
    from streamskit.topology import Topology

    topology = own_topology(_imported("--topology", chosen.topology, Topology))
    return catalogue(chosen.application_id, topology, plan(topology, chosen.application_id))


def _imported(option: str, named: str, kind: type[Any]) -> Any:
    """Return what `module:name` names, or what the function of that name returns."""
    module, _, name = named.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as failure:
        raise StreamsError(
            f"{option} {named} names nothing that can be imported: {failure}. Write module:name, where name is a "
            f"{kind.__name__} or a function that returns one, and start in the folder of the module."
        ) from failure
    except Exception as failure:
        raise _broken(option, named, f"importing {module}", failure) from failure
    made = _made(option, named, found) if callable(found) else found
    if not isinstance(made, kind):
        raise StreamsError(f"{option} {named} is a {type(made).__name__} and no {kind.__name__}.")
    return made


def _made(option: str, named: str, make: Callable[[], Any]) -> Any:
    """Return what a function returns that takes no arguments."""
    try:
        inspect.signature(make).bind()
    except TypeError as failure:
        raise StreamsError(
            f"{option} {named} cannot be called: {failure}. Name a function that needs no arguments."
        ) from failure
    except ValueError:
        pass  # a class or function of C does not say what it takes
    try:
        return make()
    except StreamsError:
        raise
    except Exception as failure:
        raise _broken(option, named, f"calling {named.partition(':')[2]}()", failure) from failure


def _broken(option: str, named: str, what: str, failure: Exception) -> StreamsError:
    last = traceback.extract_tb(failure.__traceback__)[-1]
    line = "" if isinstance(failure, SyntaxError) else f" ({last.filename}, line {last.lineno})"  # that says it itself
    return StreamsError(
        f"{option} {named}: {what} raised {type(failure).__name__}: {failure}{line}. "
        "Correct the program, then start again."
    )


def _own_folder(config: StreamsConfig, here: HostInfo) -> Path:
    return project_state_dir() / "instances" / config.application_id / str(here).replace(":", "_").strip("[]")
