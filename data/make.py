"""Write the recorded files of this folder anew from their generators: `python data/make.py`."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from streamskit.datasets import deals, invoices, movies, plays, quotes, ratings, songs, trades

FOLDER = Path(__file__).parent


def write_table(path: Path, records: Iterable[dict[str, Any]], key: str = "", time: str = "timestamp") -> None:
    """Write records as a table: their time, their key, the fields of their values.

    Args:
        path: the file.
        records: as a generator yields them.
        key: what the keys are called; without a name they are left out, as the values have them.
        time: what the timestamps are called; likewise.
    """
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        for number, record in enumerate(records):
            row = {time: record["timestamp"]} if time else {}
            row |= ({key: record["key"]} if key else {}) | record["value"]
            if number == 0:
                rows.writerow(row)
            rows.writerow(row.values())


def write_trades(path: Path) -> None:
    """Write the first 1,000 trades as a table."""
    write_table(path, trades(1_000))


def write_invoices(path: Path) -> None:
    """Write the first 200 invoices, a day's, one JSON text a line."""
    with path.open("w", newline="\n") as file:
        file.writelines(json.dumps(invoice["value"]) + "\n" for invoice in invoices(200))


def write_music(folder: Path) -> None:
    """Write the songs and the first 1,000 plays as tables."""
    write_table(folder / "songs.csv", songs(), time="")
    write_table(folder / "plays.csv", plays(1_000), key="listener")


def write_movies(folder: Path) -> None:
    """Write the movies and the first 1,000 ratings as tables."""
    write_table(folder / "movies.csv", movies(), time="")
    write_table(folder / "ratings.csv", ratings(1_000))


def write_quotes(folder: Path) -> None:
    """Write the first 1,000 quotes, a day's, and the deals made on them, as tables."""
    write_table(folder / "quotes.csv", quotes(1_000), key="asset")
    write_table(folder / "deals.csv", deals(quotes(1_000)), key="asset")


if __name__ == "__main__":
    write_trades(FOLDER / "trades.csv")
    write_invoices(FOLDER / "invoices.jsonl")
    for write in (write_music, write_movies, write_quotes):
        write(FOLDER)
