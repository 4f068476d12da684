"""Users' functions on Columns: called, typed, and explained when they are wrong."""
