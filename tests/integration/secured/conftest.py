"""A secured cluster for the tests here, and users who are let in in different ways."""

from collections.abc import Iterator
from typing import Any

import pytest

from streamskit import KafkaStreams, Topology
from streamskit.broker import ExternalBroker
from tests.integration.secured.application import PASSWORDS, Run, Settings
from tests.integration.secured.broker import SecuredBroker, secured_broker


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured"), {"bob": PASSWORDS["bob"]}) as broker:
        yield broker


@pytest.fixture
def scram(secured: SecuredBroker, name: str) -> Settings:
    settings = secured.user("alice", PASSWORDS["alice"])
    secured.allow_application("User:alice", name)
    return settings


@pytest.fixture
def plain(secured: SecuredBroker, name: str) -> Settings:
    secured.allow_application("User:bob", name)
    return secured.sasl("bob", PASSWORDS["bob"], "PLAIN")


@pytest.fixture
def certificates(secured: SecuredBroker, name: str) -> Settings:
    store = secured.authority.issue("carol", PASSWORDS["carol"]).with_suffix(".p12")
    secured.allow_application("User:CN=carol", name)
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(secured.authority.ca),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": PASSWORDS["carol"],
    }


@pytest.fixture
def mallory(secured: SecuredBroker) -> Settings:
    """The clients of a user who may do nothing until a test allows it."""
    return secured.user("mallory", PASSWORDS["mallory"])


@pytest.fixture
def start(run_on: Run) -> Run:
    """Starts a topology at an address with client settings."""

    def begin(topology: Topology, address: str, settings: Settings, **options: Any) -> KafkaStreams:
        return run_on(ExternalBroker(address), topology, client_settings=settings, **options)

    return begin
