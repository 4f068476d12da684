"""From a topology to Spark queries: what runs as Columns, what natively, and what record by record in Python.

Nothing is imported here: Spark starts a Python process for each query, which needs `stage_processor` and nothing else.
"""
