"""The site has every lesson, lab and document, and its sources are such that their links hold."""

import json
import re
from pathlib import Path

import pytest

from streamskit.views.html import SAVED
from tests.site import staging

ROOT = staging.ROOT
WRITTEN_FOR_READERS = [
    *ROOT.glob("notebooks/*.ipynb"),
    *ROOT.glob("labs/*.ipynb"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("*.md"),
]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "sources"
    staging.stage(folder)
    return folder


def test_every_lesson_lab_and_document_has_a_page() -> None:
    assert {str(path.relative_to(ROOT)) for path in WRITTEN_FOR_READERS} - set(staging.pages()) == set()


@pytest.mark.parametrize("page", staging.pages()[1:])
def test_a_page_has_one_place_in_the_table_of_contents(page: str) -> None:
    assert len(staging.places_in_the_contents(page)) == 1


def test_a_page_that_nothing_lists_has_no_place() -> None:
    assert staging.places_in_the_contents("streamskit/README.md") == []


def test_the_readme_is_the_front_page_and_has_the_table_of_contents(sources: Path) -> None:
    front = (sources / "index.md").read_text()
    assert front.startswith("# streamskit")
    assert "notebooks/*" in [entry for tree in staging.toctrees(front) for entry in tree]
    assert not (sources / "README.md").exists()


def test_links_to_the_readme_lead_to_the_front_page(sources: Path) -> None:
    assert "](README.md#the-course)" in (ROOT / "CONTRIBUTING.md").read_text()
    assert "](index.md#the-course)" in (sources / "CONTRIBUTING.md").read_text()


def test_the_pictures_and_files_that_a_page_links_to_come_along(sources: Path) -> None:
    assert (sources / "notebooks" / "pictures" / "live-view.png").read_bytes()
    assert (sources / "docs" / "layers.svg").read_text() == (ROOT / "docs" / "layers.svg").read_text()


def test_a_link_to_a_folder_is_plain_words(sources: Path) -> None:
    assert "](../streamskit/course/datasets" in (ROOT / "data" / "README.md").read_text()
    data = (sources / "data" / "README.md").read_text()
    assert re.findall(r"\]\(\.\./streamskit/course/datasets/?\)", data) == []


def test_no_output_of_a_staged_lesson_needs_a_running_widget(sources: Path) -> None:
    for page in (sources / "notebooks").glob("*.ipynb"):
        assert staging.WIDGET not in page.read_text()
        assert "widgets" not in json.loads(page.read_text())["metadata"]


def test_of_a_widget_the_page_that_was_kept_of_it_is_shown() -> None:
    widget = {"output_type": "display_data", "data": {staging.WIDGET: {}}}
    kept = {"output_type": "display_data", "data": {"text/html": f"<div class='{SAVED}'>rows</div>"}}
    assert staging.for_a_page([widget, kept]) == [kept]
    assert staging.for_a_page([widget]) == [{"output_type": "display_data", "data": {"text/html": staging.LIVE}}]


def test_the_solutions_of_the_labs_are_not_searched(sources: Path) -> None:
    assert (sources / "labs" / "instructors.md").read_text().startswith("---\nnosearch: true\n---\n")
