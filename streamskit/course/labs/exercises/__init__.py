"""The exercises of each lab, a module each."""
