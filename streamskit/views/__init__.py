"""Pictures and live views for notebooks: a view takes snapshots of what it shows, and a page writes them as HTML."""
