"""What a start finds of the run before: checkpoints, their damage, changed topologies, lost records, transactions."""
