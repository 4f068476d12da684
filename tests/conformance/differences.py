"""The vectors that streamskit does not follow, each with the reason. The README has the same table."""

DIFFERENCES: dict[str, str] = {}
