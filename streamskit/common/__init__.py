"""What every layer may use: errors, durations, folders, names, call sites."""
