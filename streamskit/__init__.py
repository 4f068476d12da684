"""streamskit: the Kafka Streams DSL in Python, on Spark Structured Streaming, over a real Kafka broker.

Its public names are listed in `__init__.pyi`. Each is imported when it is first asked for, so that the doctor runs even
where Spark or pandas is broken.
"""

import lazy_loader

__version__ = "0.1.0"

FACES = (
    "streamskit",
    "streamskit.broker",
    "streamskit.datasets",
    "streamskit.faults",
    "streamskit.labs",
    "streamskit.lessons",
    "streamskit.testing",
    "streamskit.widgets",
)
"""The modules that lessons, labs and applications import from; everything else is the inside of the package."""

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
