"""Consumer groups of a Kafka broker: to delete one is to forget what it has committed."""

from kafka import errors

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import BrokerError
from streamskit.environment.processes import eventually
from streamskit.kafka.access import Right, no_right
from streamskit.kafka.connection import admin_client

SETTLE_SECONDS = 20.0
GONE = ("OK", errors.GroupIdNotFoundError.__name__)
DENIED = errors.GroupAuthorizationFailedError.__name__
STARTING = (
    errors.CoordinatorLoadInProgressError,
    errors.CoordinatorNotAvailableError,
    errors.NotCoordinatorError,
)
"""What a broker answers about groups until it has read what they have committed."""

PASSES = (errors.NonEmptyGroupError.__name__, *(each.__name__ for each in STARTING))


def delete_groups(bootstrap_servers: BootstrapServers, names: tuple[str, ...]) -> None:
    """Delete consumer groups; see `KafkaClient`.

    Raises:
        BrokerError: one still has members, or the broker refuses for another reason.
        NoRightError: the user may not delete it.
    """
    left = dict.fromkeys(names, STARTING[0].__name__)

    def is_done() -> bool:
        try:
            answers = admin.delete_groups(list(left))
        except STARTING:
            return False
        for name, answer in answers.items():
            if answer in GONE:
                del left[name]
            else:
                left[name] = answer
        return not any(answer in PASSES for answer in left.values())

    if not names:
        return
    with admin_client(bootstrap_servers) as admin:
        eventually(is_done, SETTLE_SECONDS)
    if denied := [name for name, answer in left.items() if answer == DENIED]:
        raise no_right(bootstrap_servers, *(Right("Delete", "group", name) for name in denied))
    if left:
        told = ", ".join(f"'{name}' ({answer})" for name, answer in left.items())
        raise BrokerError(
            f"These groups were not deleted: {told}. Close the consumers of a group before you delete it; a killed one "
            "counts as a member until its session has timed out."
        )
