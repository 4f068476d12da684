"""The links of a site are checked without a network."""

from pathlib import Path

from tests.site import links


def site(folder: Path, body: str) -> Path:
    (folder / "other").mkdir()
    (folder / "index.html").write_text(f"<body>{body}</body>")
    (folder / "other" / "page.html").write_text("<h1 id='a-title'>A title</h1>")
    (folder / "picture of it.png").write_bytes(b"")
    return folder


def test_links_to_pages_titles_and_files_that_are_there_hold(tmp_path: Path) -> None:
    body = "<a href='other/page.html#a-title'></a> <img src='picture%20of%20it.png'> <a href='mailto:x'>"
    assert links.check(site(tmp_path, body)) == links.Links()


def test_a_link_to_a_page_or_a_title_that_is_not_there_is_broken(tmp_path: Path) -> None:
    body = "<a href='gone.html'></a> <a href='other/page.html#gone'></a> <a href='#gone'></a>"
    broken = ["index.html: gone.html", "index.html: other/page.html#gone", "index.html: #gone"]
    assert links.check(site(tmp_path, body)) == links.Links(broken)


def test_links_to_other_sites_are_listed_and_what_a_page_would_load_from_there_is_found(tmp_path: Path) -> None:
    body = "<a href='https://kafka.apache.org/'></a> <script src='//example.org/script.js'></script>"
    found = links.check(site(tmp_path, body))
    assert found.external == {"https://kafka.apache.org/", "//example.org/script.js"}
    assert found.loaded == ["index.html: //example.org/script.js"]
