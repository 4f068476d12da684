"""`python -m examples.music`: a broker, listeners, two applications, two instances, a page. Ctrl-C ends all of it."""

import argparse
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

from examples.music.application import Music
from examples.music.driver import Mischief
from streamskit import StreamsKitError

LAST_PORT = 65_535

TO_STOP = 90.0
"""After how many seconds a service that does not stop is ended all the same."""


def main() -> int:
    """Run the service until told to stop, and return the exit code."""
    parser = _parser()
    chosen = parser.parse_args()
    if chosen.command_config is not None and chosen.bootstrap_servers is None:
        parser.error("--command-config has the credentials for a cluster: name that cluster with --bootstrap-servers.")
    if not 0 <= chosen.port <= LAST_PORT:
        parser.error(f"--port is {chosen.port}: give a number from 1 to {LAST_PORT}, or 0 for a free one.")
    told = threading.Event()
    _listen(told)
    logging.getLogger("streamskit").setLevel(logging.ERROR)  # of broken plays the page tells
    print("A broker, Spark and the service start; that takes half a minute.", flush=True)
    try:
        return _serve(chosen, told)
    except StreamsKitError as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # while Spark starts, its own handler takes Ctrl-C
        return 130


def _serve(chosen: argparse.Namespace, told: threading.Event) -> int:
    """Start the service, run it until told to stop, and end all of it."""
    music = Music(
        chosen.port,
        chosen.instances,
        chosen.per_second,
        chosen.seed,
        chosen.bootstrap_servers,
        chosen.songs_everywhere,
        chosen.state_dir,
        chosen.host,
        chosen.command_config,
    )
    try:
        music.start()
        _listen(told)  # Spark has put a handler of its own in the place of ours
        print(f"Kafka Music is at {music.url} ; Ctrl-C ends all of it.", flush=True)
        for server in music.instances:
            print(f"A further instance answers at {server.url}/ ; kill it, and watch the page.", flush=True)
        _run(music, told, chosen.seconds, Mischief(chosen.seed))
        return 1 if music.trouble() else 0
    finally:
        print("Stopping.", flush=True)
        last = threading.Timer(TO_STOP, os._exit, [1])
        last.daemon = True
        last.start()
        music.stop()
        last.cancel()
        print("All of it has ended.", flush=True)


def _listen(told: threading.Event) -> None:
    """Let Ctrl-C and a kill end the service in an orderly way."""
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: told.set())


def _run(music: Music, told: threading.Event, seconds: float | None, mischief: Mischief) -> None:
    """Let the listeners listen until told to stop, the time is over, or the service cannot go on."""
    began = time.monotonic()
    while not told.wait(1):
        if seconds is not None and time.monotonic() - began > seconds:
            return
        if failure := music.trouble():
            print(failure, file=sys.stderr)
            return
        if music.has_listeners:
            mischief.on(music.feed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.music", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="where the page is; 0 takes a free one")
    parser.add_argument("--instances", type=int, default=2, help="how many instances answer")
    parser.add_argument("--per-second", type=float, default=20.0, help="plays a second")
    parser.add_argument("--seed", type=int, default=7, help="of the plays, and of what goes wrong with them")
    parser.add_argument("--seconds", type=float, help="stop after this many seconds")
    parser.add_argument("--bootstrap-servers", help="a broker that is there; otherwise one of its own")
    parser.add_argument(
        "--command-config", type=Path, metavar="FILE", help="a properties file with what lets clients into its cluster"
    )
    parser.add_argument(
        "--state-dir",
        type=Path,
        help="go on from the checkpoints in this folder, and leave topics and listeners to others: a deployment",
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address that the first instance listens at")
    parser.add_argument("--songs-everywhere", action="store_true", help="all songs in each instance: a global table")
    return parser


if __name__ == "__main__":
    sys.exit(main())
