"""`python -m streamskit`: the command line."""
