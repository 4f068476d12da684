import re
from pathlib import Path
from typing import Any

import pytest

from streamskit import Topology

ROOT = Path(__file__).parents[3]


@pytest.mark.columns
@pytest.mark.usefixtures("spark")
def test_the_first_example_of_the_readme_builds_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    example = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[0]
    names: dict[str, Any] = {}
    exec(example, names)
    topology: Topology = names["builder"].build()
    assert capsys.readouterr().out == topology.describe() + "\n"
    assert list(topology.stores) == ["trade-aggregates"]


def test_every_file_that_the_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
