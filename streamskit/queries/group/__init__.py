"""The consumer group of an application's instances: what they share, what they agree on, and who has what."""
