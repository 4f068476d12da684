"""The vectors that streamskit does not follow, each with the reason. docs/conformance.md has the same table."""

DIFFERENCES: dict[str, str] = {
    "joins-stream-table-left-grace-null-key": (
        "Kafka Streams promises (KIP-962) that a left join keeps a record without a key, and with a grace period fails "
        "on it with a NullPointerException, which stops the application. Here the record is joined with null at once."
    ),
}
