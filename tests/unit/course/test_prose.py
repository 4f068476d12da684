"""Lessons, labs, documents and messages are in plain, idiomatic English, without phrasings that read as translated."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamskit.course.lessons.questions import Question, questions

ROOT = Path(__file__).parents[3]
PHRASINGS: dict[str, str] = tomllib.loads((Path(__file__).parent / "banned_phrasings.toml").read_text())["phrasings"]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
GENERATED = ("kafka-streams-api.md", "instructors.md")
DOCUMENTS = [
    path
    for pattern in ("*.md", "docs/*.md", "examples/**/*.md", "labs/*.md", "data/*.md", "notebooks/*.md")
    for path in sorted(ROOT.glob(pattern))
    if path.name not in (*GENERATED, "CHANGELOG.md")
]
"""Documents that people write. The changelog keeps its words, as it says what was; others are made from other texts."""

LABS = sorted((ROOT / "labs/source").glob("*/*.ipynb"))
WORDS_OF_LABS = sorted((ROOT / "streamskit/course/labs").rglob("*.toml"))
"""Tasks, hints, and the words for solutions and mistakes."""

VERDICTS = ("right", "wrong", "unwritten")
"""The functions that make a lab's verdicts."""

NOT_YET: tuple[str, ...] = ()
"""Lessons that still wait for their edit, by number; take a lesson off once its prose is clean."""


def findings(text: str) -> list[str]:
    """Say what to write in place of each phrasing that a text should not have; code is not prose."""
    prose = re.sub(r"```.*?```|`[^`]*`", "`code`", text, flags=re.S)
    # A line break within a paragraph is a blank.
    prose = re.sub(r"(?<!\n)\n(?![\n|#-])", " ", prose)
    return [
        f"'{found[0].strip()}': write {instead}"
        for pattern, instead in PHRASINGS.items()
        for found in re.finditer(pattern, prose)
    ]


def prose_of(notebook: Path) -> dict[str, str]:
    cells = json.loads(notebook.read_text())["cells"]
    return {cell["id"]: "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"}


def texts_of(words: Any) -> Iterator[str]:
    """Return the texts in a lab's file of words; wrong answers are code."""
    if isinstance(words, dict):
        words = [value for key, value in words.items() if key != "wrong"]
    if isinstance(words, list):
        for each in words:
            yield from texts_of(each)
    else:
        yield words


def messages_of(module: Path) -> list[str]:
    """Return the sentences of a module's errors, warnings and verdicts; what they fill in counts as code."""
    tree = ast.parse(module.read_text())
    said = [node for node in ast.walk(tree) if isinstance(node, ast.Raise) or _warns(node) or _judges(node)]
    parts = {part for node in said for part in ast.walk(node) if isinstance(part, ast.JoinedStr | ast.Constant)}
    return [_text(part) for part in parts]


def _warns(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("warning", "warn")


def _judges(node: ast.AST) -> bool:
    """Whether a node is a lab's verdict, or what it says of the records that went in."""
    if isinstance(node, ast.keyword):
        return node.arg == "tested"
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in VERDICTS


def _text(part: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(part, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "`value`" for each in part.values)
    return part.value if isinstance(part.value, str) else ""


def is_due(lesson: Path) -> bool:
    return not lesson.name.startswith(tuple(f"{number}-" for number in NOT_YET))


@pytest.mark.parametrize("lesson", [path for path in LESSONS if is_due(path)], ids=lambda path: path.stem)
def test_a_lesson_is_written_in_plain_english(lesson: Path) -> None:
    assert {cell: found for cell, text in prose_of(lesson).items() if (found := findings(text))} == {}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_is_written_in_plain_english(document: Path) -> None:
    assert findings(document.read_text()) == []


@pytest.mark.parametrize("lab", LABS, ids=lambda path: path.stem)
def test_a_lab_is_written_in_plain_english(lab: Path) -> None:
    assert {cell: found for cell, text in prose_of(lab).items() if (found := findings(text))} == {}


@pytest.mark.parametrize("words", WORDS_OF_LABS, ids=lambda path: path.stem)
def test_tasks_hints_and_the_words_for_mistakes_are_written_in_plain_english(words: Path) -> None:
    texts = list(texts_of(tomllib.loads(words.read_text())))
    assert len(texts) > 10
    assert {text: found for text in texts if (found := findings(text))} == {}


def test_errors_warnings_and_verdicts_are_written_in_plain_english() -> None:
    said = {path: messages_of(path) for path in (ROOT / "streamskit").rglob("*.py")}
    assert {str(path): found for path, texts in said.items() if (found := findings("\n\n".join(texts)))} == {}


@pytest.mark.parametrize("question", questions().values(), ids=lambda each: each.name)
def test_a_prediction_is_written_in_plain_english(question: Question) -> None:
    said = [question.ask, question.because, *map(str, question.choices.values()), *question.mistakes.values()]
    assert findings("\n\n".join(said)) == []


@pytest.mark.parametrize(
    ("translated", "found"),
    [
        ("What becomes of an order?", "becomes of"),
        ("By then, without\na word, it is closed.", "without a word"),
        ("Who fails to log in three times is reported.", "Who fails to log in three times is reported."),
        ("The rows stand in the order of arrival.", "stand in"),
        ("A record comes late.", "record comes"),
    ],
)
def test_a_translated_phrasing_is_found(translated: str, found: str) -> None:
    assert found in findings(translated)[0]


@pytest.mark.parametrize(
    "plain", ["Who reads this topic?", "`dear` is a column.", "What happens to an order?", "A record arrives late."]
)
def test_plain_english_and_code_pass(plain: str) -> None:
    assert findings(plain) == []
