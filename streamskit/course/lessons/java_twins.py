"""`java_twin("name", topology)`: the same program in Java behind a fold, and whether the two are the same topology.

The Java programs are files in `twins/`. `tests/java/record_twins.py` compiles them against Kafka Streams and records
what its `describe()` prints. A lesson compares that with the description of its own topology when its cell runs.
"""

import hashlib
import json
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from streamskit.common.errors import StreamsKitError
from streamskit.course.lessons.folding import Folded
from streamskit.topology.topology import Topology
from streamskit.views.html import CODE

TWINS = Path(__file__).with_name("twins")
DESCRIPTIONS = TWINS / "descriptions.json"

SAME = "In Java: the same topology"
OTHER = "In Java: not the topology that you have now"
LEFT_OUT = (
    "Imports are left out. serde(...) stands for a serde that you bring, such as JSON by Jackson, or Avro with a "
    "registry."
)
AGREES = "Kafka Streams' own describe() prints for this program what topology.describe() prints for yours."
DIFFERS = (
    "Kafka Streams' describe() prints something else for this program than topology.describe() for yours. If you have "
    "changed your program, change this one, too. Here is where they part:"
)


def java_twin(name: str, topology: Topology) -> Folded:
    """Show the Java program of a topology, and say whether it is still the same topology.

    Args:
        name: of the Java program, such as "red-widgets".
        topology: the lesson's own, as it is now.

    Raises:
        StreamsKitError: there is no Java program of that name.
        TypeError: it is no topology.

    >>> java_twin("red-widgets", topology)  # doctest: +SKIP
    [In Java: the same topology]
    """
    recorded = _recorded()["programs"]
    if name not in recorded:
        raise StreamsKitError(f"There is no Java program '{name}'. There are: {', '.join(sorted(recorded))}.")
    source = (TWINS / f"{name}.java").read_text(encoding="utf-8")
    if not isinstance(topology, Topology):
        raise TypeError(
            f"java_twin compares with a topology, and this is a {type(topology).__name__}: write "
            f'java_twin("{name}", builder.build()).'
        )
    java, here = recorded[name]["describe"].splitlines(), topology.describe().splitlines()
    if java == here:
        return _folded(SAME, AGREES, source)
    here_first, java_first = _parting(here, java)
    return _folded(OTHER, f"{DIFFERS} here “{here_first}”, in Java “{java_first}”.", source)


def fingerprint(source: str) -> str:
    """Return what changes when a Java program changes."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


@cache
def _recorded() -> Any:
    return json.loads(DESCRIPTIONS.read_text(encoding="utf-8"))


def _parting(here: list[str], java: list[str]) -> tuple[str, str]:
    """Return the first line in which the two differ, from each; "the end" where one has no more lines."""
    longest = max(len(here), len(java))
    pairs = zip(*(lines + ["the end"] * (longest - len(lines)) for lines in (here, java)), strict=True)
    return next((one.strip(), other.strip()) for one, other in pairs if one != other)


def _folded(title: str, says: str, source: str) -> Folded:
    code = f'<pre style="{CODE}"><code>{escape(source)}</code></pre>'
    html = f"{code}<p>{escape(says)} {escape(LEFT_OUT)}</p>"
    return Folded(title, html, f"{source}\n{says}")
