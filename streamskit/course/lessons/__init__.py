"""What makes a lesson active: predictions before a cell runs, answers that unfold, and drawings of mechanisms.

The questions are data, a TOML file for each lesson in `predictions/`; lessons import from `streamskit.lessons`.
"""
