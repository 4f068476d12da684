"""From a topology to Spark queries: what runs as Columns, what natively, and what record by record in Python."""

from streamskit.lowering.cutting import plan
from streamskit.lowering.frames import outputs
from streamskit.lowering.options import Options
from streamskit.lowering.plan import Entry, Plan, is_readable

__all__ = ["Entry", "Options", "Plan", "is_readable", "outputs", "plan"]
