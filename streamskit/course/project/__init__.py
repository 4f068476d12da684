"""The learners' project: a template to begin with, and checks of what every project has to hold, whatever it does."""
