"""How clients of kafka-python find one of several brokers that answers, where another stands still.

A broker that is frozen, or cut off, takes connections and never answers. kafka-python waits for the first broker that
it tries for all the time that it has for all of them, and then says that none answers.
"""

from typing import Any

from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataResponse

LEAST_MILLISECONDS = 1000.0
"""How long a broker may take to answer in any case, as it may be merely busy."""


class OneOfSeveral(KafkaNetClient):
    """What a client of kafka-python connects with (its setting `kafka_client`): it tries one broker after another."""

    def __init__(self, **settings: Any) -> None:
        net = NetworkSelector(**settings)
        super().__init__(net=net, manager=_Manager(net, **settings), **settings)


class _Manager(KafkaConnectionManager):
    """Tries each address that it was given before it tries one again, and gives each half of the time that is left.

    What any broker may answer it asks the one that has answered, as the others that this one lists may stand still.
    """

    def __init__(self, net: NetworkSelector, **settings: Any) -> None:
        super().__init__(net, **settings)
        self._tried: set[str] = set()
        self._last_tried = ""
        self._addresses = self.cluster.bootstrap_brokers
        self.cluster.bootstrap_brokers = self._untried

    def _untried(self) -> list[MetadataResponse.MetadataResponseBroker]:
        """Return the addresses that have not been tried in this round."""
        addresses = self._addresses()
        if all(each.node_id in self._tried for each in addresses):
            self._tried.clear()
        return [each for each in addresses if each.node_id not in self._tried]

    def get_connection(self, node_id: Any, timeout_ms: float | None = None, **how: Any) -> KafkaConnection:
        """Return the connection to a broker, which may not be made yet."""
        if self.cluster.is_bootstrap(node_id):
            self._tried.add(node_id)
            self._last_tried = node_id
            is_last = all(each.node_id in self._tried for each in self._addresses())
            if timeout_ms is not None and not is_last:
                timeout_ms = max(timeout_ms / 2, min(LEAST_MILLISECONDS, timeout_ms))
        return super().get_connection(node_id, timeout_ms, **how)

    def least_loaded_node(self) -> Any:
        """Return the broker for a request that any of them can answer: one that is connected, or that has answered."""
        found = super().least_loaded_node()
        if (connection := self._conns.get(found)) is not None and connection.connected:
            return found
        answered = self.cluster.broker_metadata(self._last_tried)
        at_its_address = [
            each.node_id
            for each in self.cluster.brokers()
            if answered is not None and (each.host, each.port) == (answered.host, answered.port)
        ]
        return next((each for each in at_its_address if each not in self._backoff), found)
