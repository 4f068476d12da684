"""Asking the stores of an application from anywhere."""

from streamskit.interactive.client.query_client import QueryClient

__all__ = ["QueryClient"]
