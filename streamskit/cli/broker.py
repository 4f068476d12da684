"""`python -m streamskit broker start|stop|status|clean`: the broker of this project, from a terminal."""

import argparse
from collections.abc import Sequence

from streamskit.broker.base import Broker
from streamskit.broker.embedded import EmbeddedBroker
from streamskit.broker.shared import (
    check_answers,
    clean_shared_broker,
    find_shared_broker,
    shared_broker,
    stop_shared_broker,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code.

    Raises:
        BrokerError: the broker does not do what it is asked.
    """
    parser = argparse.ArgumentParser(
        prog="python -m streamskit broker",
        description="The Kafka broker that the notebooks of this project share.",
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    for run in (start, stop, status, clean):
        commands.add_parser(run.__name__, help=run.__doc__, description=run.__doc__).set_defaults(run=run)
    code: int = parser.parse_args(arguments).run()
    return code


def start() -> int:
    """Start the broker, if it does not run yet."""
    running = find_shared_broker() is not None
    broker = shared_broker()
    check_answers(broker)
    print(f"The broker {'already runs' if running else 'is ready'} at {_where(broker)}.")
    return 0


def stop() -> int:
    """Stop the broker; its data stays."""
    print("The broker is stopped; its data stays." if stop_shared_broker() else "No broker was running.")
    return 0


def status() -> int:
    """Say whether the broker runs, where, and with which topics (exit code 1 if it does not)."""
    broker = find_shared_broker()
    if broker is None:
        print("No broker is running. Start it with: python -m streamskit broker start")
        return 1
    topics = broker.topics()
    print(f"The broker runs at {_where(broker)}.")
    print("\n".join(f"  {name}: {count} partition(s)" for name, count in topics.items()) or "  It has no topics yet.")
    return 0


def clean() -> int:
    """Stop the broker and remove all its data."""
    removed = clean_shared_broker()
    print("The broker is stopped and its data removed." if removed else "There was no data to remove.")
    return 0


def _where(broker: Broker) -> str:
    if isinstance(broker, EmbeddedBroker) and broker.process:
        return f"{broker.bootstrap_servers} (process {broker.process.pid}, data in {broker.data_dir})"
    return broker.bootstrap_servers
