"""What goes wrong between values and bytes."""

from streamskit.common.errors import StreamsKitError


class SerdeError(ValueError):
    """Bytes that are not of a serde's format, or a value that has none; the message names the serde."""


class RegistryError(StreamsKitError):
    """The schema registry cannot be reached, or refuses a schema. No record is at fault."""
