"""What the tasks of a foreign-key join write to each other, as bytes of repartition topics."""

import struct
from enum import IntEnum
from typing import NamedTuple


class Instruction(IntEnum):
    """What a left row asks of a foreign key. Mirrors `SubscriptionWrapper.Instruction`."""

    MOVE_AWAY = 0
    """It has gone to another foreign key, which will answer."""
    LEAVE = 1
    """It was deleted, or has no foreign key any more."""
    STAY = 2
    """It was here, or at another foreign key before: answer also if there is no right row, to take a result back."""
    ENTER = 3
    """It was nowhere before: it has no result yet."""


STAYING = (Instruction.STAY, Instruction.ENTER)
"""The instructions after which a left row is subscribed."""


class SubscriptionWrapper(NamedTuple):
    """From a left row to its foreign key."""

    instruction: Instruction
    digest: bytes
    """The fingerprint of the left row; empty if it was deleted."""
    primary_key: bytes
    """The key of the left row."""

    def to_bytes(self) -> bytes:
        """Return the message: one byte each for the instruction and the digest's length, the digest, the key."""
        return struct.pack("BB", self.instruction, len(self.digest)) + self.digest + self.primary_key

    @classmethod
    def from_bytes(cls, data: bytes) -> "SubscriptionWrapper":
        """Return what a message says."""
        end = 2 + data[1]
        return cls(Instruction(data[0]), data[2:end], data[end:])


class SubscriptionResponseWrapper(NamedTuple):
    """From a foreign key to a left row."""

    digest: bytes
    """The fingerprint of the left row that asked."""
    right: bytes | None
    """The right row's value, if there is one."""

    def to_bytes(self) -> bytes:
        """Return the message: one byte each for the digest's length and whether there is a right row, then both."""
        return struct.pack("B?", len(self.digest), self.right is not None) + self.digest + (self.right or b"")

    @classmethod
    def from_bytes(cls, data: bytes) -> "SubscriptionResponseWrapper":
        """Return what a message says."""
        end = 2 + data[0]
        return cls(data[2:end], data[end:] if data[1] else None)
