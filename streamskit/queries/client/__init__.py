"""Asking the stores of an application from anywhere."""

from streamskit.queries.client.query_client import QueryClient

__all__ = ["QueryClient"]
