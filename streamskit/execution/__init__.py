"""From a topology to Spark queries: what runs as Columns, what natively, and what record by record in Python."""
