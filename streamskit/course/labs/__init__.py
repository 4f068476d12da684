"""Labs: exercises, what their checks know, and how a check's verdict is shown.

A lab is a notebook in `labs/`; its solutions are in `labs/source/`; what its checks know is in
`streamskit.course.labs.exercises`.
"""
