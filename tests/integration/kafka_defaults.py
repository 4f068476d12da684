"""Kafka 4's own settings, where the broker for teaching has others."""

KAFKA_DEFAULTS = {
    "auto.create.topics.enable": "true",
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.num.partitions": "50",
    "group.initial.rebalance.delay.ms": "3000",
    "group.min.session.timeout.ms": "6000",
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "log.segment.bytes": str(1024**3),
    "log.index.size.max.bytes": str(10 * 1024**2),
    "log.cleaner.backoff.ms": "15000",
    "log.cleaner.min.cleanable.ratio": "0.5",
    "log.segment.delete.delay.ms": "60000",
    "log.message.timestamp.after.max.ms": str(3600 * 1000),
}
"""Kept are the replication factors of a single node, a smaller buffer for compaction, and that no record grows old: a
week ends for the tests' records, which are of 1970, when the broker first looks for old ones."""
