"""How nbgrader finds the labs: `cd labs && nbgrader generate_assignment 08-windows`; see README.md beside this file."""

config = get_config()  # type: ignore[name-defined]  # noqa: F821 - nbgrader's own
config.CourseDirectory.course_id = "streamskit"
# In seconds, for a cell. Longer than a check waits for an answer, and a live mission for what is done in it: it then
# says in which line that hangs, and nbgrader only that it does.
config.ExecutePreprocessor.timeout = 1500
