"""Faults to inject, each a function that returns a `Fault`: what was done, what to watch, how to undo it.

They touch only what runs on this machine and belongs to this program: its brokers, clusters, instances, folders.
"""

from streamskit.faults.brokers import kill_broker, pause_broker
from streamskit.faults.driver import Driver
from streamskit.faults.fault import Fault
from streamskit.faults.folders import corrupt_checkpoint, delete_state
from streamskit.faults.kills import kill_driver, kill_executor, kill_instance
from streamskit.faults.records import poison

__all__ = [
    "Driver",
    "Fault",
    "corrupt_checkpoint",
    "delete_state",
    "kill_broker",
    "kill_driver",
    "kill_executor",
    "kill_instance",
    "pause_broker",
    "poison",
]
