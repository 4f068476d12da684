"""`python -m streamskit broker start|stop|status|clean`: the broker of this project, from a terminal."""

import argparse
import sys

from streamskit.broker.base import Broker
from streamskit.broker.embedded import EmbeddedBroker
from streamskit.broker.shared import (
    clean_shared_broker,
    find_shared_broker,
    shared_broker,
    stop_shared_broker,
)
from streamskit.common.errors import StreamsKitError

COMMANDS = {
    "start": "start the broker, if it does not run yet",
    "stop": "stop the broker; its data stays",
    "status": "say whether the broker runs, where, and with which topics (exit code 1 if it does not)",
    "clean": "stop the broker and remove all its data",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m streamskit broker",
        description="The Kafka broker that the notebooks of this project share.",
    )
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text, description=text)
    command = parser.parse_args(arguments).command
    try:
        return {"start": start, "stop": stop, "status": status, "clean": clean}[command]()
    except StreamsKitError as error:
        print(error, file=sys.stderr)
        return 1


def start() -> int:
    """Start the broker."""
    running = find_shared_broker() is not None
    broker = shared_broker()
    print(f"The broker {'already runs' if running else 'is ready'} at {_where(broker)}.")
    return 0


def stop() -> int:
    """Stop the broker."""
    print("The broker is stopped; its data stays." if stop_shared_broker() else "No broker was running.")
    return 0


def status() -> int:
    """Say how the broker is."""
    broker = find_shared_broker()
    if broker is None:
        print("No broker is running. Start it with: python -m streamskit broker start")
        return 1
    topics = broker.topics()
    print(f"The broker runs at {_where(broker)}.")
    print("\n".join(f"  {name}: {count} partition(s)" for name, count in topics.items()) or "  It has no topics yet.")
    return 0


def clean() -> int:
    """Remove the broker's data."""
    removed = clean_shared_broker()
    print("The broker is stopped and its data removed." if removed else "There was no data to remove.")
    return 0


def _where(broker: Broker) -> str:
    if isinstance(broker, EmbeddedBroker) and broker.process:
        return f"{broker.bootstrap_servers} (process {broker.process.pid}, data in {broker.data_dir})"
    return broker.bootstrap_servers
