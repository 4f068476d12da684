"""The page of Kafka Streams' API beside ours is true: no name is missing on either side, and what it names exists."""

from dataclasses import replace

import pytest

from tests.conformance.api.counterparts import AREAS, FOLDER, ONLY_HERE, Area, Comparison, JavaClass
from tests.conformance.api.names import NoSuchNameError, find, members, snake_case
from tests.conformance.api.page import PAGE, page
from tests.unit.course.test_prose import findings


def compared(**said: dict[str, object]) -> Comparison:
    """Return a comparison of three classes of Kafka Streams, of which a person says something, or nothing."""
    recorded = {
        "KafkaStreams": JavaClass("KafkaStreams", "class", ("start", "cleanUp")),
        "kstream.Produced": JavaClass("kstream.Produced", "class", ("withName",)),
        "KafkaStreams.State": JavaClass("KafkaStreams.State", "enum", constants=("RUNNING",)),
    }
    usual: dict[str, dict[str, object]] = {
        "KafkaStreams": {},
        "kstream.Produced": {"here": "KStream.to", "withName": "KStream.to(name=)"},
        "KafkaStreams.State": {},
    }
    return Comparison(
        recorded, [Area("An area", "", usual | {name.replace("_", "."): each for name, each in said.items()})], {}
    )


def kafkas_side(comparison: Comparison) -> list[str]:
    """Return what is wrong, except that three classes leave most names of streamskit out."""
    return [each for each in comparison.findings() if "only_here.toml with the reason" not in each]


def test_nothing_is_missing_on_either_side_and_every_name_exists() -> None:
    assert Comparison.of_the_files().findings() == []


def test_the_page_is_the_one_that_the_two_apis_make() -> None:
    assert PAGE.read_text() == page(Comparison.of_the_files()), "Run: python -m tests.conformance.api.page"


def test_the_page_is_written_in_plain_english() -> None:
    assert findings(PAGE.read_text()) == []


def test_every_file_of_the_folder_is_read() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.toml")) == sorted([*AREAS, ONLY_HERE])


def test_the_same_name_in_snake_case_needs_no_entry() -> None:
    comparison = compared()
    assert kafkas_side(comparison) == []
    assert [(row.java, row.status, row.entry.here) for row in comparison.rows["An area"]] == [
        ("KafkaStreams", "here", ("KafkaStreams",)),
        ("KafkaStreams#start", "here", ("KafkaStreams.start",)),
        ("KafkaStreams#cleanUp", "here", ("KafkaStreams.clean_up",)),
        ("Produced", "renamed", ("KStream.to",)),
        ("Produced#withName", "renamed", ("KStream.to(name=)",)),
        ("KafkaStreams.State", "here", ("State",)),
        ("KafkaStreams.State.RUNNING", "here", ("State.RUNNING",)),
    ]


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (
            {"kstream_Produced": {}},
            [
                "kstream.Produced: no public name of streamskit is called so; say where it is, or why it is absent.",
                "Produced#withName: no with_name in streamskit; say where it is, or why not.",
                "Produced: 'Produced' leads nowhere: streamskit has no 'Produced'.",
            ],
        ),
        (
            {"kstream_Produced": {"here": "KStream.to", "withName": "KStream.to(nome=)"}},
            ["Produced#withName: KStream.to takes no keyword nome=."],
        ),
        (
            {
                "kstream_Produced": {
                    "here": "KStream.to",
                    "withName": {"here": "KStream.to", "note": "As `KStream.tow`."},
                }
            },
            ["Produced#withName: `KStream.tow` is a name of neither side."],
        ),
        (
            {"KafkaStreams": {"cleanUp": "KafkaStreams.clean_up"}},
            ["KafkaStreams#cleanUp: 'here' says what its name says; leave it out."],
        ),
        (
            {"KafkaStreams": {"cleanUp": {"absent": "Nobody has written it."}}},
            ["KafkaStreams#cleanUp: it is not absent, KafkaStreams.clean_up exists; take that out."],
        ),
        (
            {"KafkaStreams": {"cleenUp": "KafkaStreams.close"}},
            ["KafkaStreams: there is no method or constant 'cleenUp'."],
        ),
        ({"KafkaStreams": {"here": "KafkaStreams"}}, ["KafkaStreams: 'here' says what its name says; leave it out."]),
        (
            {"KafkaStreams": {"rest": {"absent": "Later."}}},
            ["KafkaStreams: 'rest' is for members that nothing is said of, and there are none."],
        ),
        ({"Topology": {}}, ["Topology is not in the listing."]),
        (
            {"KafkaStreams_State": {"absent": "Later."}},
            ["KafkaStreams.State: it is not absent, State exists; take that out."],
        ),
    ],
)
def test_an_entry_that_is_wrong_or_not_needed_is_found(said: dict[str, dict[str, object]], wrong: list[str]) -> None:
    assert kafkas_side(compared(**said)) == wrong


def test_a_class_without_an_entry_is_found() -> None:
    comparison = compared()
    comparison.classes = {**comparison.classes, "Extra": JavaClass("Extra", "class")}
    assert kafkas_side(comparison) == ["Extra is in no area: add it to one of the TOML files."]


def test_a_class_with_two_entries_is_found() -> None:
    comparison = compared()
    comparison.areas.append(Area("Another area", "", {"KafkaStreams.State": {}}))
    assert kafkas_side(comparison) == ["KafkaStreams.State is in 2 files."]


def test_a_reason_for_a_name_that_does_not_exist_is_found() -> None:
    comparison = replace(compared(), only_here={"KafkaStreams.fly": "Spark flies."})
    assert [each for each in comparison.findings() if "fly" in each] == [
        "only_here.toml: 'KafkaStreams.fly' leads nowhere: type object 'KafkaStreams' has no attribute 'fly'."
    ]


def test_a_public_name_of_ours_without_a_row_or_a_reason_is_found() -> None:
    found = compared().findings()
    assert "KafkaStreams.explain is missing: give it a row, or name it in only_here.toml with the reason." in found
    assert "doctor is missing: give it a row, or name it in only_here.toml with the reason." in found
    assert not any(each.startswith(("KafkaStreams.clean_up is", "KStream.to is")) for each in found)


def test_a_reason_for_what_has_a_counterpart_is_found() -> None:
    comparison = replace(
        compared(), only_here={"KafkaStreams.start": "Why not?", "KafkaStreams.explain": "Spark has it."}
    )
    found = [each for each in comparison.findings() if each.startswith("only_here")]
    assert found == [
        "only_here.toml: KafkaStreams.start has a counterpart in Kafka Streams, as another file says; take it out."
    ]


@pytest.mark.parametrize(
    ("java", "python"),
    [("flatMapValues", "flat_map_values"), ("to", "to"), ("currentStreamTimeMs", "current_stream_time_ms")],
)
def test_javas_names_are_spelled_in_snake_case(java: str, python: str) -> None:
    assert snake_case(java) == python


@pytest.mark.parametrize("path", ["KStream.fly", "nowhere.to_be.found", "KStream.to(nome=)", "KStream to"])
def test_a_path_that_leads_nowhere_is_found(path: str) -> None:
    with pytest.raises(NoSuchNameError):
        find(path)


def test_members_are_methods_and_constants_not_fields() -> None:
    assert members(find("Windowed")) == []
    assert members(find("State"))[:2] == ["CREATED", "REBALANCING"]
    assert {"advance_by", "starting_for"} <= set(members(find("TimeWindows"))).difference({"size", "advance"})
