"""The query planner: from a topology to the plans of Spark queries."""
