"""The list of an application's stores, as `serve` finds it: JSON, which runs no code."""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamskit import JoinWindows, Serde, Serdes, SessionWindows, SlidingWindows, Stores, TimeWindows, UnlimitedWindows
from streamskit.api.windows import AnyWindows
from streamskit.common.errors import StreamsError
from streamskit.queries import Catalogue, QueryableStore
from streamskit.state.stores import Store

STRING, LONG = Serdes.string(), Serdes.long()


class TillLine(Serde):
    def serialize(self, value: Any) -> bytes | None:
        return value

    def deserialize(self, data: bytes | None) -> Any:
        return data


def of(*stores: Store) -> Catalogue:
    return Catalogue("shop", tuple(QueryableStore(store, f"shop-{store.name}-changelog", 1) for store in stores))


def test_all_kinds_of_stores_come_back_as_they_were(tmp_path: Path) -> None:
    windows: list[AnyWindows | JoinWindows] = [
        TimeWindows.of_size_and_grace("5 seconds", "1 second").advance_by("1 second"),
        SlidingWindows.of_time_difference_with_no_grace("10 minutes"),
        SessionWindows.of_inactivity_gap_with_no_grace("5 minutes"),
        UnlimitedWindows.of().start_on(1000),
        JoinWindows.of_time_difference_with_no_grace("1 minute"),
    ]
    stores = [
        Stores.persistent_key_value_store("counts", STRING, LONG),
        Stores.lru_map("recent", 10, Serdes.uuid(), Serdes.json("a string")),
        Stores.persistent_timestamped_key_value_store("timed", Serdes.list(LONG), STRING).with_caching(False),
        Stores.persistent_versioned_key_value_store("prices", "1 hour", STRING, Serdes.double()),
        Stores.persistent_session_store("visits", "1 day", STRING, LONG).with_logging(False),
        *(Store(f"windows-{number}", "window", STRING, LONG, each, 7) for number, each in enumerate(windows)),
    ]
    catalogue = of(*stores)
    entries = (*catalogue, replace(catalogue.entries[0], group=-1, routed=False, is_global=True, partitions=3))
    Catalogue("shop", entries).save(tmp_path / "shop")
    assert Catalogue.load(tmp_path / "shop") == Catalogue("shop", entries)


def test_a_list_is_read_that_an_earlier_version_wrote(tmp_path: Path) -> None:
    catalogue = of(Stores.persistent_key_value_store("counts", STRING, LONG))
    catalogue.save(tmp_path / "shop")
    file = tmp_path / "shop" / "stores.json"
    file.write_text(file.read_text().replace('"is_global"', '"everywhere"'))
    assert "everywhere" in file.read_text()
    assert Catalogue.load(tmp_path / "shop") == catalogue


def test_a_pickle_is_never_read_and_goes_with_the_next_start(tmp_path: Path) -> None:
    class Payload:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "code ran",)

    (tmp_path / "shop").mkdir()
    for name in ("stores.pickle", "stores.json"):
        (tmp_path / "shop" / name).write_bytes(pickle.dumps(Payload()))
    with pytest.raises(StreamsError, match=r"stores\.json cannot be read: .* Start the application again"):
        Catalogue.load(tmp_path / "shop")
    assert not (tmp_path / "code ran").exists()
    of().save(tmp_path / "shop")
    assert [each.name for each in (tmp_path / "shop").iterdir()] == ["stores.json"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"application_id": "shop", "stores": [{"changelog": "a"}]}'])
def test_a_damaged_list_is_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "stores.json").write_text(text)
    with pytest.raises(StreamsError, match="Start the application again; it writes it anew"):
        Catalogue.load(tmp_path / "shop")


def test_a_serde_of_the_programs_own_is_named_with_what_to_do(tmp_path: Path) -> None:
    of(Stores.persistent_key_value_store("tills", STRING, TillLine())).save(tmp_path / "shop")
    said = json.loads((tmp_path / "shop" / "stores.json").read_text())["stores"][0]["store"]["value"]
    assert said["serde"] == "custom"
    named = r"Store 'tills' cannot be read here: TillLine\(\) is made by .*TillLine, a class of the program's own\. "
    with pytest.raises(StreamsError, match=named + r".*serve shop --serde module:class"):
        Catalogue.load(tmp_path / "shop")


def test_an_application_that_never_ran_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StreamsError, match=r"no application 'shop'.* name its state_dir with --applications, or"):
        Catalogue.load(tmp_path / "shop")
