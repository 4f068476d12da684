"""Local copies of state stores: their rows, where these are kept, and what can be asked."""
