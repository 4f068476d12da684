"""`python -m streamskit doctor`: looks at this machine, and at a cluster if one is named."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from streamskit.environment.diagnosis import Check, Diagnosis
from streamskit.environment.doctor import doctor

CONNECT_SECONDS = 10.0
ADDRESS_VARIABLE = "STREAMSKIT_BOOTSTRAP_SERVERS"


def main(arguments: Sequence[str] = ()) -> int:
    """Print the diagnosis; the exit code is 1 if there is a problem."""
    parser = argparse.ArgumentParser(prog="python -m streamskit doctor", description=__doc__)
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="a cluster to connect to")
    parser.add_argument(
        "--command-config", type=Path, metavar="FILE", help="a properties file with what its clients show to be let in"
    )
    parser.add_argument(
        "--topics", metavar="NAME,NAME", help="topics that are to be joined: was one of them partitioned by librdkafka?"
    )
    chosen = parser.parse_args(arguments)
    if chosen.bootstrap_servers is not None and not chosen.bootstrap_servers.strip():
        parser.error("--bootstrap-servers is empty, as from a variable that is not set: give host:port.")
    address = chosen.bootstrap_servers or os.environ.get(ADDRESS_VARIABLE) or None
    if chosen.command_config is not None and address is None:
        parser.error("--command-config has the credentials for a cluster: name that cluster with --bootstrap-servers.")
    if chosen.topics is not None and address is None:
        parser.error("--topics are those of a cluster: name that cluster with --bootstrap-servers.")
    checks = tuple(doctor())
    if address is not None and not any(check.name == "Broker" and check.status == "problem" for check in checks):
        cluster = _cluster(address, chosen.command_config)
        checks += (cluster,)
        if chosen.topics is not None and cluster.status == "ok":
            names = [name.strip() for name in chosen.topics.split(",") if name.strip()]
            checks += tuple(_topic(address, chosen.command_config, name) for name in names)
    diagnosis = Diagnosis(checks)
    print(diagnosis)
    return 0 if diagnosis.healthy else 1


def _cluster(address: str, file: Path | None) -> Check:
    # Imported here, because the doctor has to run even where a package that these need is broken.
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


def _topic(address: str, file: Path | None, name: str) -> Check:
    """Check who wrote a topic: one partitioned by librdkafka's default cannot be joined with most others."""
    from confluent_kafka import KafkaException

    from streamskit.api.client_settings import ClientSettings
    from streamskit.common.errors import StreamsKitError
    from streamskit.kafka.partitioning_check import ADVICE, look_at

    try:
        found = look_at(ClientSettings.of(address, file), name)
    except StreamsKitError as failure:
        says, _, do = str(failure).partition(". ")
        return Check("Topic", "problem", says.rstrip(".") + ".", do)
    except KafkaException as failure:
        return Check("Topic", "problem", f"'{name}' cannot be read: {failure.args[0].str()}.", "Look at its name.")
    if found.is_librdkafkas:
        return Check("Topic", "warning", f"librdkafka's default partitioner seems to have written {found}.", ADVICE)
    if found.partitions > 1 and not found.keys:
        return Check("Topic", "ok", f"'{name}' ({found.partitions} partitions) has no records with keys yet.")
    says = f"'{name}' has one partition, in which all keys meet." if found.partitions == 1 else f"{found}."
    return Check("Topic", "ok", says)
