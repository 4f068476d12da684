"""How nbgrader finds the labs: `cd labs && nbgrader generate_assignment 08-windows`; see README.md beside this file."""

config = get_config()  # type: ignore[name-defined]  # noqa: F821 - nbgrader's own
config.CourseDirectory.course_id = "streamskit"
# Longer than a check waits for an answer: it then says in which line that hangs, and nbgrader only that it does.
config.ExecutePreprocessor.timeout = 360
