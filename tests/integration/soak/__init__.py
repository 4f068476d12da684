"""What `make soak` is made of: a program of everything, its records, the faults, what is watched, and the judge."""
