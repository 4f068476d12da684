"""Local copies of state stores: their rows, where they are kept, and the queries on them."""
