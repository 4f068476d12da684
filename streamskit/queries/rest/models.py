"""What REST answers look like, for the OpenAPI page."""

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

ROW = {"key": "KO", "value": {"count": 3}, "timestamp": 1704186000000, "partition": 0}
HEARD = {"partition": 0, "host": "127.0.0.1:8080", "role": "active", "lag": 0}


def _like(example: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"example": example})


class WindowBounds(BaseModel):
    """Start and end of a window or session, in milliseconds since 1970."""

    start: int
    end: int


class StoreRow(BaseModel):
    """A row of a list; `timestamp` is when its value was set, in milliseconds since 1970."""

    model_config = _like(ROW)
    key: Any
    window: WindowBounds | None = Field(None, description="of a window or session store")
    value: Any
    timestamp: int | None = Field(None, description="null in rows that are only peeked at")
    valid_to: int | None = Field(None, description="when it was replaced, in a list of versions")
    partition: int


class AnsweredPartition(BaseModel):
    """Who answered for a partition."""

    model_config = _like(HEARD)
    partition: int
    host: str
    role: str = Field(description="active, standby or global")
    lag: int


class MissingPartition(BaseModel):
    """A partition for which nobody answered."""

    model_config = _like({"partition": 1, "why": "127.0.0.1:8081 cannot be reached."})
    partition: int
    why: str


class SingleRow(StoreRow, AnsweredPartition):
    """A row, and who answered: `lag` is how many updates of the changelog that instance has not read yet."""

    model_config = _like({**ROW, "host": "127.0.0.1:8080", "role": "active", "lag": 0})


class OfPartitions(BaseModel):
    """An answer that is gathered from the partitions of a store."""

    store: str
    partitions: list[AnsweredPartition]
    missing: list[MissingPartition]


class RowList(OfPartitions):
    """A page of rows; `next`, if it is not null, goes into `?after=` to get the next one."""

    model_config = _like(
        {"store": "counts", "rows": [ROW], "next": None, "partitions": [HEARD], "missing": [], "unreadable": 0}
    )
    rows: list[StoreRow]
    next: str | None
    unreadable: int = Field(description="how many rows were left out, as the store's serdes cannot read them")


class RowCount(OfPartitions):
    """How many rows a store has."""

    model_config = _like({"store": "counts", "count": 42, "partitions": [HEARD], "missing": []})
    count: int


class KeyMetadata(BaseModel):
    """Which instances have a key; the partition is -1 where each has all rows."""

    model_config = _like(
        {"store": "counts", "key": "KO", "partition": 0, "active_host": "127.0.0.1:8080", "standby_hosts": []}
    )
    store: str
    key: Any
    partition: int
    active_host: str | None
    standby_hosts: list[str]


class PartitionProgress(BaseModel):
    """How far an instance is with a partition: read up to `position` of a changelog that ends at `end`."""

    model_config = _like({"partition": 0, "role": "active", "position": 90, "end": 90, "lag": 0, "ready": True})
    partition: int
    role: str
    position: int
    end: int
    lag: int
    ready: bool


class InstanceReport(BaseModel):
    """An instance and, by store, the partitions it has; `error` says why it reported nothing."""

    model_config = _like(
        {
            "server": "127.0.0.1:8080",
            "reachable": True,
            "error": None,
            "stores": {"counts": [{**HEARD, "position": 90, "end": 90, "ready": True}]},
        }
    )
    server: str
    reachable: bool
    error: str | None
    stores: dict[str, list[PartitionProgress]]


class InstanceList(BaseModel):
    """All instances of the application, each as it describes itself."""

    application_id: str
    instances: list[InstanceReport]


class StoreDescription(BaseModel):
    """A store; `key` and `value` are types as Spark's JSON schemas have them, or "json", "uuid", "windowed"."""

    model_config = _like(
        {
            "name": "counts",
            "kind": "key-value",
            "partitions": 4,
            "changelog": "app-counts-changelog",
            "key": "string",
            "value": "long",
            "routed": True,
            "everywhere": False,
        }
    )
    name: str
    kind: str = Field(description="key-value, versioned, window or session")
    partitions: int
    changelog: str
    key: Any
    value: Any
    routed: bool = Field(description="whether the partition of a row follows from its key")
    everywhere: bool = Field(description="whether each instance has all rows")


class StoreList(BaseModel):
    """The stores of the application."""

    application_id: str
    stores: list[StoreDescription]


class Health(BaseModel):
    """The health of the instance that answers."""

    model_config = _like(
        {
            "status": "ok",
            "application_id": "trades-app",
            "server": "127.0.0.1:8080",
            "state": "RUNNING",
            "parts": {"Spark's Java": True, "the thread of sub-topology 0": True, "the reader of the changelogs": True},
        }
    )
    status: str = Field(description="ok; with 503 failed or waiting, and `error` says why")
    application_id: str
    server: str
    state: str | None = Field(description="the application's; null of an instance in a process of its own")
    parts: dict[str, bool] = Field(description="for each part, whether it is alive")


class Problem(BaseModel):
    """Why there is no answer, and what to do."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"example": {"error": "Store 'counts' has no key 'KO'.", "what_to_do": "Ask for another."}},
    )
    error: str
    what_to_do: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "A parameter is wrong, or the store is of another kind."},
    401: {"model": Problem, "description": "The token is missing or another one."},
    404: {"model": Problem, "description": "There is no such store, or no such row."},
    414: {"model": Problem, "description": "A key is longer than 8 KB."},
    503: {"model": Problem, "description": "Nobody can answer at the moment; Retry-After says when to ask again."},
}
"""The error responses of each route."""

LONGEST = 2**63 - 1

StoreName = Annotated[str, Path(description="The name of the store.", examples=["counts"])]
Key = Annotated[
    str,
    Path(
        description="A key, percent-encoded: text, a number, true or false, a UUID; bytes as base64 with - and _; "
        "anything else as JSON.",
        examples=["KO"],
    ),
]
PathFrom = Annotated[str, Path(alias="from", description="The first key.", examples=["A"])]
PathTo = Annotated[str, Path(alias="to", description="The last key.", examples=["Z"])]
OpenFrom = Annotated[str | None, Query(alias="from", description="The first key; without it this side is open.")]
OpenTo = Annotated[str | None, Query(alias="to", description="The last key; without it this side is open.")]
StartTime = Annotated[int, Path(description="Milliseconds since 1970.", ge=-LONGEST, le=LONGEST, examples=[0])]
TimeFrom = Annotated[
    int, Path(alias="from", description="Milliseconds since 1970.", ge=-LONGEST, le=LONGEST, examples=[0])
]
TimeTo = Annotated[
    int, Path(alias="to", description="Milliseconds since 1970.", ge=-LONGEST, le=LONGEST, examples=[60_000])
]
OpenKey = Annotated[str | None, Query(description="A key; without it this side is open.", examples=["KO"])]
AnyTime = Annotated[int | None, Query(description="Milliseconds since 1970.", ge=-LONGEST, le=LONGEST)]
EarliestTime = Annotated[
    int | None, Query(alias="from", description="Versions replaced by then are left out.", ge=-LONGEST, le=LONGEST)
]
LatestTime = Annotated[
    int | None, Query(alias="to", description="Versions that begin later are left out.", ge=-LONGEST, le=LONGEST)
]
Reverse = Annotated[bool, Query(description="Whether the last row comes first.")]
Limit = Annotated[int, Query(description="How many rows there may be.", ge=1, le=10_000)]
After = Annotated[str | None, Query(description="`next` of the page before.")]
Partial = Annotated[bool, Query(description="Whether to answer when partitions are missing; `missing` says which.")]


def says(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """Return the answers of a route, for its page."""
    return {200: {"model": model}, **PROBLEMS}
