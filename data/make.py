"""Write the recorded files of this folder anew from their generators: `python data/make.py`."""

import csv
import json
from pathlib import Path

from streamskit.datasets import trades
from streamskit.invoices import invoices

FOLDER = Path(__file__).parent


def write_trades(path: Path) -> None:
    """Write the first 1,000 trades as a table."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["timestamp", "symbol", "type", "price", "size"])
        for trade in trades(1_000):
            value = trade["value"]
            rows.writerow([trade["timestamp"], value["symbol"], value["type"], value["price"], value["size"]])


def write_invoices(path: Path) -> None:
    """Write the first 200 invoices, a day's, one JSON text a line."""
    with path.open("w", newline="\n") as file:
        file.writelines(json.dumps(invoice["value"]) + "\n" for invoice in invoices(200))


if __name__ == "__main__":
    write_trades(FOLDER / "trades.csv")
    write_invoices(FOLDER / "invoices.jsonl")
