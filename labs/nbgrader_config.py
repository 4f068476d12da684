"""How nbgrader finds the labs: `cd labs && nbgrader generate_assignment 08-windows`; see README.md beside this file."""

config = get_config()  # type: ignore[name-defined]  # noqa: F821 - nbgrader's own
config.CourseDirectory.course_id = "streamskit"
config.ExecutePreprocessor.timeout = 300  # Spark starts once in each notebook
