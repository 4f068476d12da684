"""From a topology to Spark: one function for each kind of node."""

from streamskit.lowering.plan import Plan, plan

__all__ = ["Plan", "plan"]
