"""The routes of lab 23's mission in two releases; instances in processes of their own find them by their names."""

from typing import Any

from streamskit.queries.rest_service import RestCall, RestService

STORE = "play-counts"
KEY = "{genre}/{song}"

first, second = RestService(), RestService()


async def plays(call: RestCall, genre: str, song: str) -> dict[str, Any] | None:
    """How often a song was played."""
    found = call.store(STORE).get(f"{genre}/{song}")
    return None if found is None else {"plays": found}


for release in (first, second):
    release.get("/plays/{genre}/{song}", store=STORE, key=KEY)(plays)


@second.get("/share/{genre}/{song}", store=STORE, key=KEY)
async def share(call: RestCall, genre: str, song: str) -> dict[str, Any] | None:
    """How often a song was played, and which part of the plays of its genre that is."""
    found = call.store(STORE).get(f"{genre}/{song}")
    if found is None:
        return None
    of_genre = await call.ask("state", "keyvalues", STORE, "prefix", f"{genre}/")
    return {"plays": found, "share": found / sum(row["value"] for row in of_genre["rows"])}
