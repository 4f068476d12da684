"""The records of the lessons and labs: each function yields them in the order of their time, ready to produce.

Made from a seed, so that the same call gives the same records on every machine; the flights are real.
"""

from streamskit.course.datasets.event_time import DAY, HOUR, MINUTE, NEW_YEAR, at, replay
from streamskit.course.datasets.feed import Feed
from streamskit.course.datasets.flights import (
    AIRLINE_SCHEMA,
    FLIGHT_SCHEMA,
    PLANE_SCHEMA,
    WEATHER_SCHEMA,
    airlines,
    flights,
    flights_table,
    planes,
    weather,
)
from streamskit.course.datasets.invoices import INVOICE_SCHEMA, invoices
from streamskit.course.datasets.movies import MOVIE_SCHEMA, RATING_SCHEMA, movies, ratings
from streamskit.course.datasets.music import PLAY_SCHEMA, SONG_SCHEMA, plays, songs
from streamskit.course.datasets.quotes import DEAL_SCHEMA, QUOTE_SCHEMA, deals, quotes
from streamskit.course.datasets.trades import trades, widgets

__all__ = [
    "AIRLINE_SCHEMA",
    "DAY",
    "DEAL_SCHEMA",
    "FLIGHT_SCHEMA",
    "HOUR",
    "INVOICE_SCHEMA",
    "MINUTE",
    "MOVIE_SCHEMA",
    "NEW_YEAR",
    "PLANE_SCHEMA",
    "PLAY_SCHEMA",
    "QUOTE_SCHEMA",
    "RATING_SCHEMA",
    "SONG_SCHEMA",
    "WEATHER_SCHEMA",
    "Feed",
    "airlines",
    "at",
    "deals",
    "flights",
    "flights_table",
    "invoices",
    "movies",
    "planes",
    "plays",
    "quotes",
    "ratings",
    "replay",
    "songs",
    "trades",
    "weather",
    "widgets",
]
