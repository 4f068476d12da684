"""What streamskit raises: sentences that say what is wrong, where, and what to do next."""


class StreamsKitError(Exception):
    """The root of every error that streamskit raises on purpose."""


class SetupError(StreamsKitError):
    """This machine lacks something: Java, a jar, a free port, disk space. The message says what to do."""


class BrokerError(StreamsKitError):
    """The Kafka broker, or a request to it, failed (Kafka's own words are the cause)."""


class TopologyError(StreamsKitError):
    """The program is not a valid topology, or cannot run on Spark; names the node and what to write instead."""


class StreamsError(StreamsKitError):
    """A running application failed, or was asked for something its state does not allow."""


class InvalidStateStoreError(StreamsError):
    """A store cannot be queried: it does not exist, is not ready, or has another kind.

    Mirrors `org.apache.kafka.streams.errors.InvalidStateStoreException`.
    """


class UnknownStateStoreError(InvalidStateStoreError):
    """The application has no store of that name. Mirrors `UnknownStateStoreException`."""


class StreamsNotStartedError(InvalidStateStoreError):
    """The application has not been started. Mirrors `StreamsNotStartedException`."""


class StateStoreNotAvailableError(InvalidStateStoreError):
    """The application has stopped, and its stores with it. Mirrors `StateStoreNotAvailableException`."""


class StreamsRebalancingError(InvalidStateStoreError):
    """The store is being restored, or its partitions are on their way: ask again in a moment.

    Mirrors `StreamsRebalancingException`.
    """


class StateStoreMigratedError(InvalidStateStoreError):
    """What was asked for has moved to another instance: ask there. Mirrors `StateStoreMigratedException`."""


class InvalidStateStorePartitionError(InvalidStateStoreError):
    """The partition that was asked for is not here. Mirrors `InvalidStateStorePartitionException`."""
