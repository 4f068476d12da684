"""The words of the glossary: one line and the defining lesson for each; lessons link to them where they are bold."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ENTRY = re.compile(r"^### (.+)\n\n(.+) → \[[^]]+\]\(\.\./notebooks/([^)]+)\)$", re.M)
LINKED = re.compile(r"\*\*\[[^]]+\]\(\.\./docs/glossary\.md#([^)]+)\)\*\*")
LINK = re.compile(r"\]\(\.\./docs/glossary\.md#([^)]+)\)")

EMPHASIS = {
    *(
        "Kafka Streams",
        "Python values",
        "plain Python functions",
        "lesson",
        "lab",
        "batch",
        "stream",
        "library",
        "delete",
    ),
    *(
        "Flink",
        "Spark",
        "Columns",
        "predict",
        "compact",
        "within a partition",
        "last record of each key",
        "one at a time",
    ),
    *(
        "one",
        "not",
        "first",
        "new value",
        "by offset",
        "source",
        "both",
        "all",
        "order's",
        "Then",
        "as it is now",
        "and",
    ),
    *(
        "big-endian",
        "empty text",
        "null",
        "bytes",
        "default",
        "resolves",
        "either",
        "subscribes",
        "key",
        "value",
        "last",
    ),
    *(
        "the same number of partitions",
        "in the records",
        "UTC",
        "merge",
        "closes",
        "five minutes",
        "fails",
        "skip",
        "it",
    ),
    *("each task has its own stream time", "delay", "drop duplicates", "put records in order", "let rows expire"),
    *("request", "fields", "no cache", "once in a micro-batch", "four"),
}
"""What lessons 0 to 11 print in bold to stress it, and not because they define it."""

EMPHASIS_OF_LATER_LESSONS = {
    "12": {"stop", "skip the record", "set it aside", "as it was", "context", "broker"},
    "13": {
        "one task for each partition of its largest source topic",
        "largest number of partitions",
        "query",
        "Cores",
    },
    "13b": {"median", "state"},
    "14": {"the same program again", "classic", "Streams", "Spark standalone cluster", "Here", "state"},
    "15": {
        "also somewhere else",
        "in memory",
        "fall back to a standby by themselves",
        "is",
    },
    "15b": {"between the two", "adds up", "is"},
    "16": {"read-only", "Routing", "another"},
    "18": {"charts", "listener", "row of the table of counts"},
    "19": {
        "line",
        "without",
        "several tasks",
        "leaves it in its partition",
        "card as the key",
        "just as wrong",
    },
    "20": {"Parse", "count and a sum", "joined with the table of movies"},
    "21": {"quote", "bid", "ask", "deal", "position", "spread", "net", "gross", "feeds", "name"},
    "22": {"real", "should", "early", "counts and sums", "Weather", "Planes"},
    "23": {"second application", "which instance", "`Feed`"},
    "23b": {"StatefulSet", "Deployment", "Service", "ConfigMap", "an update of the runner"},
}
"""The same for each lesson from 12 on. Some are words of the lesson's story, such as bid and ask."""


def words() -> list[tuple[str, str, str]]:
    """Each word with its meaning and the file of its lesson."""
    return ENTRY.findall(GLOSSARY.partition("\n## Words\n")[2].partition("\n## ")[0])


def anchor(word: str) -> str:
    """The anchor of a heading, as GitHub, JupyterLab and the site make it."""
    return word.lower().replace(" ", "-")


def prose(lesson: Path) -> str:
    """A lesson's text without code."""
    cells = json.loads(lesson.read_text())["cells"]
    text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return re.sub(r"```.*?```", "", text, flags=re.S)


def test_each_word_has_one_line_and_a_lesson_in_the_order_of_the_alphabet() -> None:
    section = GLOSSARY.partition("\n## Words\n")[2].partition("\n## ")[0]
    names = [word for word, *_ in words()]
    assert names == re.findall(r"^### (.+)$", section, re.M)
    assert names == sorted(set(names), key=str.lower)
    assert [lesson for *_, lesson in words() if not (ROOT / "notebooks" / lesson).exists()] == []


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_link_to_the_glossary_leads_to_a_word(lesson: Path) -> None:
    known = {"words", *(anchor(word) for word, *_ in words())}
    assert [link for link in LINK.findall(prose(lesson)) if link not in known] == []


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_links_the_words_that_it_defines(lesson: Path) -> None:
    defined = [anchor(word) for word, _, file in words() if file == lesson.name]
    linked = LINKED.findall(prose(lesson))
    assert [word for word in defined if word not in linked] == []


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_bold_term_of_a_lesson_is_linked_where_it_is_first_bold(lesson: Path) -> None:
    """A term may be bold again further down; anything else that is bold is emphasis, or ends a heading of its own."""
    stressed = EMPHASIS | EMPHASIS_OF_LATER_LESSONS.get(lesson.name.partition("-")[0], set())
    linked: set[str] = set()
    missing = []
    for bold in re.findall(r"\*\*(.+?)\*\*", prose(lesson), re.S):
        text = " ".join(bold.split())
        if link := LINK.search(text):
            linked.add(link[1])
        elif text not in stressed and not _names_a_part(text) and not any(_is(text, word) for word in linked):
            missing.append(text)
    assert missing == []


def _names_a_part(text: str) -> bool:
    """Whether bold text begins a paragraph or a list, such as "Lab:" or "Now you change it."."""
    return text[-1] in ":.?" or text.startswith(
        ("After this", "In Kafka", "In Spark", "In a lesson", "What ", "If you")
    )


def _is(text: str, word: str) -> bool:
    return anchor(text).rstrip("s") == word.rstrip("s")
