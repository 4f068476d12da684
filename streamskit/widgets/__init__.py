"""Live views for notebooks. Importing this imports ipywidgets; the rest of streamskit does without."""

from streamskit.widgets.store_view import StoreView

__all__ = ["StoreView"]
