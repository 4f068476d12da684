"""Pictures and live views for notebooks."""
