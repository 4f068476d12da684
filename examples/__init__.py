"""Finished applications, to be run, read and changed."""
