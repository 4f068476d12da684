"""Write the recorded files of this folder anew from their generators: `python data/make.py`."""

import csv
from pathlib import Path

from streamskit.datasets import trades

FOLDER = Path(__file__).parent


def write_trades(path: Path) -> None:
    """Write the first 1,000 trades as a table."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["timestamp", "symbol", "type", "price", "size"])
        for trade in trades(1_000):
            value = trade["value"]
            rows.writerow([trade["timestamp"], value["symbol"], value["type"], value["price"], value["size"]])


if __name__ == "__main__":
    write_trades(FOLDER / "trades.csv")
