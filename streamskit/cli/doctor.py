"""`python -m streamskit doctor`: looks at this machine, and at a cluster if one is named."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from streamskit.environment.diagnosis import Check, Diagnosis
from streamskit.environment.doctor import doctor

CONNECT_SECONDS = 10.0


def main(arguments: Sequence[str] = ()) -> int:
    """Print the diagnosis; the exit code is 1 if there is a problem."""
    parser = argparse.ArgumentParser(prog="python -m streamskit doctor", description=__doc__)
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="a cluster to connect to")
    parser.add_argument(
        "--command-config", type=Path, metavar="FILE", help="a properties file with what its clients show to be let in"
    )
    chosen = parser.parse_args(arguments)
    if chosen.command_config is not None and chosen.bootstrap_servers is None:
        parser.error("--command-config says how to be let into a cluster: name it with --bootstrap-servers.")
    checks = tuple(doctor())
    if chosen.bootstrap_servers is not None:
        checks += (_cluster(chosen.bootstrap_servers, chosen.command_config),)
    diagnosis = Diagnosis(checks)
    print(diagnosis)
    return 0 if diagnosis.healthy else 1


def _cluster(address: str, file: Path | None) -> Check:
    # The doctor has to run where a package is broken, which these need.
    from streamskit.api.client_settings import ClientSettings
    from streamskit.common.errors import StreamsKitError
    from streamskit.kafka.access import principal
    from streamskit.kafka.connection import admin_client

    try:
        settings = ClientSettings.of(address, file)
        with admin_client(settings, CONNECT_SECONDS) as admin:
            brokers, topics = len(admin.describe_cluster()["brokers"]), len(admin.list_topics())
        who = principal(settings)
    except StreamsKitError as failure:
        says, _, do = str(failure).partition(". ")
        return Check("Cluster", "problem", says.rstrip(".") + ".", do)
    seen = f"brokers: {brokers}, topics that can be seen: {topics}"
    return Check("Cluster", "ok", f"{address} lets {who or 'clients without a name'} in; {seen}.")
