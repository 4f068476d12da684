"""Predictions, folds and drawings: what a learner sees before a guess and after one; nothing is told too early."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from streamskit.common.errors import StreamsKitError
from streamskit.course.lessons import questions
from streamskit.course.lessons.questions import Question, parsed, same
from streamskit.lessons import Drawing, described, fold, predict, reveal
from streamskit.views.html import SAVED, SWITCH
from tests.unit.course.test_prose import NOT_YET

ROOT = Path(__file__).parents[3]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))

PLAIN_NAME = re.compile(r'(?:Consumer|\.send|\.subscribe)\(\s*\[?"|group_id="|folder / "\w+-app"')
"""A topic or a group for a plain client of Kafka's, or an application's folder, without the prefix of a class."""

SEATS = Question("seats", "demo", "How many seats?", "One for each guest.", {}, {"3": "You forgot the host."})
DOOR = Question(
    "door", "demo", "Which door?", "It is the wide one.", {"a": "left", "b": "right"}, {"a": "Left is the cupboard."}
)


@pytest.fixture(autouse=True)
def two_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "questions", lambda: {"seats": SEATS, "door": DOOR})


def page(thing: Any) -> tuple[str, str]:
    bundle = thing._repr_mimebundle_()
    return bundle["text/html"], bundle["text/plain"]


def test_without_a_guess_the_lesson_goes_on_and_the_answer_stays_folded() -> None:
    assert "in place of the ..." in page(predict("seats"))[1]
    html, text = page(reveal("seats", 4, "four chairs"))
    assert html.startswith("<details style")
    assert "The answer: 4." in html
    assert "four chairs" in html
    assert text == "[No prediction yet. Make one above, or unfold the result]"


def test_a_right_guess_is_confirmed_and_explained() -> None:
    assert "Your guess is noted: 4." in page(predict("seats", 4))[1]
    html, text = page(reveal("seats", 4))
    assert html.startswith("<details open")
    assert text.endswith("✓ 4, as you said. One for each guest.")


def test_a_typical_mistake_is_told_beside_the_result() -> None:
    predict("seats", 3)
    assert reveal("seats", 4).says() == "✗ You said 3; it is 4. You forgot the host. One for each guest."


def test_a_wrong_guess_that_is_not_typical_is_told_the_result_and_why() -> None:
    predict("seats", 7)
    assert reveal("seats", 4).says() == "✗ You said 7; it is 4. One for each guest."


@pytest.mark.parametrize("guess", ["a", " A", "left"])
def test_a_choice_is_named_by_its_letter_or_its_value(guess: str) -> None:
    predict("door", guess)
    assert reveal("door", "right").says() == "✗ You said left; it is right. Left is the cupboard. It is the wide one."


def test_a_guess_that_is_no_choice_is_not_taken_and_the_choices_are_named() -> None:
    _, text = page(predict("door", "z"))
    assert '\'z\' is none of the choices. Guess with one of their letters: "a", "b".' in text
    assert not page(reveal("door", "right"))[0].startswith("<details open")


def test_a_question_for_a_number_does_not_take_a_letter() -> None:
    assert page(predict("seats", "z"))[1].endswith("'z' is not a number, and this question asks for one, such as 1.")
    assert reveal("seats", 4).says().startswith("The answer: 4.")
    assert "Your guess is noted: 4." in page(predict("seats", "4"))[1]


def test_a_question_shows_what_to_write_with_the_quotes_that_python_needs() -> None:
    assert page(predict("door"))[1].endswith(
        'Put "a" or "b" in place of the ... above, run this cell, and then the next one.'
    )
    venue = Question("venue", "demo", "Which venue?", "The default.", {}, {"None": "That would be the default null."})
    assert venue.wanted == "your guess, a word in quotes,"
    assert Question("pair", "demo", "?", "So.", {}, {"(3, 21)": "No."}).wanted == "2 numbers, such as (1, 2),"
    assert SEATS.wanted == "your guess"


def test_several_numbers_need_no_parentheses(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Question("pair", "demo", "Count and sum?", "So.", {}, {"(3, 21)": "Too many."})
    monkeypatch.setattr(questions, "questions", lambda: {"pair": pair})
    assert "Your guess is noted: (2, 12)." in page(predict("pair", 2, 12))[1]
    assert reveal("pair", (2, 12)).is_right


def test_a_question_for_two_numbers_takes_two(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Question("pair", "demo", "Count and sum?", "So.", {}, {"(3, 21)": "Too many.", "(2, 16)": "Too early."})
    monkeypatch.setattr(questions, "questions", lambda: {"pair": pair})
    for guess in (2, "2 and 12", {"count": 2}, (2, 12, 1)):
        told = page(predict("pair", guess))[1]
        assert told.endswith(f"{guess!r} is not 2 numbers, and this question asks for 2, such as (1, 2).")
    predict("pair", "2, 12")
    assert reveal("pair", (2, 12)).is_right


def test_none_is_a_guess_and_quotes_around_a_text_are_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    venue = Question("venue", "demo", "Which venue?", "The default.", {}, {"None": "That would be the default null."})
    monkeypatch.setattr(questions, "questions", lambda: {"venue": venue})
    assert "Your guess is noted: None." in page(predict("venue", None))[1]
    assert (
        reveal("venue", "unknown").says().startswith("✗ You said None; it is unknown. That would be the default null.")
    )
    predict("venue", "'unknown'")
    assert reveal("venue", "unknown").is_right


def test_a_question_asked_again_without_a_guess_forgets_the_old_one() -> None:
    predict("seats", 4)
    predict("seats")
    assert not reveal("seats", 4).is_right


def test_the_verdict_is_of_what_the_cell_computed() -> None:
    predict("seats", 4)
    assert not reveal("seats", 5).is_right


def test_a_result_that_is_no_choice_is_an_error_that_says_what_to_run() -> None:
    with pytest.raises(StreamsKitError, match=r"'window', which is none of the answers .* run them again from the top"):
        reveal("door", "window")


def test_an_unknown_question_names_those_that_are_near() -> None:
    with pytest.raises(StreamsKitError, match="Did you mean seats"):
        predict("seat")


def test_a_guess_in_the_place_of_the_name_is_told() -> None:
    with pytest.raises(StreamsKitError, match="3 is no name of a question"):
        predict(3, ...)  # type: ignore[arg-type]


def test_a_question_without_an_explanation_is_refused() -> None:
    with pytest.raises(StreamsKitError, match="needs both 'ask' and 'because'"):
        parsed('[seats]\nask = "How many?"', "demo")


def test_a_misspelt_entry_of_a_question_is_refused() -> None:
    with pytest.raises(StreamsKitError, match="does not know mistake"):
        parsed('[seats]\nask = "How many?"\nbecause = "So."\nmistake = "No."', "demo")


# ---- folds -----------------------------------------------------------------------------------------------------------


def test_a_fold_shows_its_title_only_and_escapes_what_is_in_it() -> None:
    html, text = page(fold("The plan", "Filter (a < b)"))
    assert html.index("<summary") < html.index("The plan") < html.index("</summary>") < html.index("a &lt; b")
    assert text == "[The plan]"


def test_a_figure_is_not_folded_without_words_for_it() -> None:
    from matplotlib.figure import Figure

    with pytest.raises(StreamsKitError, match="pass alt="):
        fold("A plot", Figure())
    assert '<img alt="an empty plot"' in fold("A plot", Figure(), alt="an empty plot").html


def test_a_figure_has_its_alternative_text_in_the_page_and_instead_of_it() -> None:
    from matplotlib.figure import Figure

    html, text = page(described(Figure(), "two orders of a tv"))
    assert html.startswith('<img alt="two orders of a tv"')
    assert text == "two orders of a tv"


def test_a_figure_that_brings_its_own_words_is_described_by_them() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    figure.set_label("two orders of a watch")
    assert described(figure).alt == "two orders of a watch"
    assert 'alt="two orders of a watch"' in fold("A plot", figure).html


# ---- drawings --------------------------------------------------------------------------------------------------------


def drawn() -> Drawing:
    drawing = Drawing("A topic & its reader", "Two records with the key tv lie in partition 0.", 400, 160)
    drawing.log(100, 60, "partition 0", [("tv", "tv <1>"), None, ("tv", "tv 2")], keys=["tv"], first=5)
    drawing.frame(10, 100, 200, 50, "task").drum(20, 120, 60, 30, "store").box(100, 120, 60, 24, "count")
    drawing.rows(250, 100, "table", [("tv", "tv = 2")])
    return drawing.arrow((0, 0), (50, 50), "reads", bend=10).line((0, 0), (9, 9), dashed=True)


def test_a_drawing_is_valid_svg_with_a_title_and_words() -> None:
    root = ElementTree.fromstring(drawn().svg())
    name = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{name}title") == "A topic & its reader"
    assert root.findtext(f"{name}desc") == "Two records with the key tv lie in partition 0."
    words = [each.text for each in root.iter(f"{name}text")]
    assert {"tv <1>", "tv 2", "5", "7", "task", "store", "count", "tv = 2", "reads"} <= set(words)


def test_a_drawing_has_alternative_text_in_the_page() -> None:
    assert drawn()._repr_html_().startswith('<img alt="Two records with the key tv lie in partition 0."')


def test_a_drawing_is_dark_on_dark_pages_of_jupyter_and_vs_code_and_light_on_light_ones() -> None:
    html = drawn()._repr_html_()
    assert re.findall(r'<img [^>]*class="streamskit-drawing"', html)
    rules = dict(re.findall(r":is\((.+?)\) \.streamskit-drawing\{color-scheme:(dark|light)\}", html))
    on = {look: page.split(",") for page, look in rules.items()}
    assert on == {
        "dark": [
            '[data-jp-theme-light="false"]',
            ".vscode-dark",
            ".vscode-high-contrast:not(.vscode-high-contrast-light)",
        ],
        "light": ['[data-jp-theme-light="true"]', ".vscode-light", ".vscode-high-contrast-light"],
    }


def test_a_drawing_on_a_page_without_a_theme_is_as_the_reader_s_system_is() -> None:
    assert "@media (prefers-color-scheme:dark){" in drawn().svg()


def test_everything_in_a_drawing_has_a_look_on_dark_paper() -> None:
    svg = drawn().svg()
    used = set(re.findall(r'class="([\w-]+)"', svg))
    in_the_dark = set(re.findall(r"\.([lfs]-\w+)\{", svg))
    assert used
    assert used <= in_the_dark


def test_a_drawing_without_words_is_refused() -> None:
    with pytest.raises(StreamsKitError, match="needs words for those who cannot see it"):
        Drawing("A topic", "a log")


# ---- the lessons -----------------------------------------------------------------------------------------------------


def calls(path: Path, function: str) -> list[str]:
    code = ["".join(c["source"]) for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    return re.findall(rf'\b{function}\(\s*"([^"]+)"', "\n".join(code))


def asked() -> Iterator[tuple[str, str]]:
    for lesson in LESSONS:
        yield from ((lesson.name, name) for name in calls(lesson, "predict"))


def test_every_question_is_asked_in_one_lesson_and_answered_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert sorted(name for _, name in asked()) == sorted(questions.questions())
    for lesson in LESSONS:
        assert calls(lesson, "predict") == calls(lesson, "reveal"), lesson.name


def test_no_lesson_is_stored_with_a_guess() -> None:
    for lesson in LESSONS:
        code = "".join("".join(c["source"]) for c in json.loads(lesson.read_text())["cells"])
        assert re.findall(r'\bpredict\("[^"]+", (?!\.\.\.\))', code) == [], lesson.name


def test_what_a_wrong_choice_is_told_belongs_to_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for each in questions.questions().values():
        if each.choices:
            assert each.mistakes.keys() <= each.choices.keys(), each.name
            assert len(each.mistakes) >= 1, each.name


def is_due(lesson: Path) -> bool:
    return not lesson.name.startswith(tuple(f"{number}-" for number in (*NOT_YET, "00", "00b")))


DUE = [lesson for lesson in LESSONS if is_due(lesson)]
WITH_ALL_PARTS = [lesson for lesson in DUE if lesson.name >= "01"]
"""All lessons but the introductions."""


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_asks_three_to_five_times(lesson: Path) -> None:
    assert 3 <= len(calls(lesson, "predict")) <= 5


@pytest.mark.parametrize("lesson", WITH_ALL_PARTS, ids=lambda path: path.stem)
def test_a_lesson_recalls_earlier_ones_lets_you_change_it_and_says_how_long_it_takes(lesson: Path) -> None:
    cells = json.loads(lesson.read_text())["cells"]
    prose = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    recalled = prose.partition("**Do you remember?**")[2].partition("\n## ")[0]
    assert recalled.count("<details>") >= 2
    assert "**Now you change it.**" in prose
    assert re.search(r"Takes about \d+ minutes", "".join(cells[0]["source"]))


@pytest.mark.parametrize("lesson", DUE, ids=lambda path: path.stem)
def test_no_picture_of_a_lesson_is_without_words(lesson: Path) -> None:
    outputs = [each for c in json.loads(lesson.read_text())["cells"] for each in c.get("outputs", [])]
    assert [each for each in outputs if "image/png" in each.get("data", {})] == []
    pages = "".join("".join(each.get("data", {}).get("text/html", "")) for each in outputs)
    assert re.findall(r'<img (?!alt="[^"]{10})', pages) == []


@pytest.mark.parametrize("lesson", DUE, ids=lambda path: path.stem)
def test_a_lesson_is_stored_with_the_outputs_of_all_its_cells(lesson: Path) -> None:
    cells = [c for c in json.loads(lesson.read_text())["cells"] if c["cell_type"] == "code"]
    assert [c["id"] for c in cells if c["execution_count"] is None] == []


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_the_page_kept_of_a_view_hides_one_of_two_outputs_in_every_frontend(lesson: Path) -> None:
    outputs = [each for c in json.loads(lesson.read_text())["cells"] for each in c.get("outputs", [])]
    pages = ["".join(each.get("data", {}).get("text/html", "")) for each in outputs]
    assert [page[-200:] for page in pages if f'<div class="{SAVED}">' in page and SWITCH not in page] == []


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_plain_clients_get_full_names_because_a_class_may_share_a_broker(lesson: Path) -> None:
    cells = [cell for cell in json.loads(lesson.read_text())["cells"] if cell["cell_type"] == "code"]
    assert not [code for cell in cells if PLAIN_NAME.search(code := "".join(cell["source"]))]


@pytest.mark.parametrize(
    "code",
    [
        'KafkaConsumer("a")',
        'KafkaConsumer(\n    "a",',
        'p.send("a", b"")',
        'c.subscribe(["a"])',
        'group_id="a"',
        'folder / "a-app"',
    ],
)
def test_a_plain_name_is_found_where_a_client_gets_one(code: str) -> None:
    assert PLAIN_NAME.search(code)
    assert not PLAIN_NAME.search(re.sub('("a(-app)?")', r"broker.full_name(\1)", code))


@pytest.mark.parametrize(
    ("guess", "result"),
    [("4,000", 4000), ("3.50", 3.5), ("4.0", 4), ("+4", 4), ("1_000", 1000), ("2, 12", (2, 12)), ("(2, 12)", (2, 12))],
)
def test_a_number_is_right_however_it_is_written(guess: str, result: Any) -> None:
    assert same(guess, result)
    assert same(result, guess)


@pytest.mark.parametrize(
    ("guess", "result"), [("40,00", 4000), ("1", True), ("four", 4), ("2, 13", (2, 12)), ("2", (2, 12)), ("nan", 4)]
)
def test_another_number_is_wrong(guess: str, result: Any) -> None:
    assert not same(guess, result)


@pytest.mark.parametrize("guess", [np.int64(12), np.array(12), pd.Series([12]).sum()])
def test_a_number_that_was_computed_with_pandas_is_a_guess(guess: Any) -> None:
    assert same(guess, 12)
    assert not same(guess, "12 and 5")
    assert not same([1, 2], guess)


@pytest.mark.parametrize("guess", [np.array([2, 12]), pd.Series([2, 12])])
def test_several_numbers_that_were_computed_with_pandas_are_a_guess(guess: Any) -> None:
    both = Question("both", "demo", "Count and sum?", "!", {}, {"(3, 21)": "Both count."})
    assert same(both.value_of(guess), (2, 12))
    assert not same(guess, (2, 13))
    assert not same(guess, 2)


def test_a_data_frame_is_a_wrong_guess_and_no_error() -> None:
    predict("door", pd.DataFrame({"door": ["left"]}))
    predict("seats", pd.DataFrame({"seats": [4]}))
    assert reveal("seats", 4).says() == "The answer: 4. One for each guest."
    assert not same(pd.DataFrame({"seats": [4]}), 4)


def test_a_typical_wrong_number_is_answered_however_it_is_written() -> None:
    asked = Question("seats", "demo", "?", "!", {}, {"4000": "No.", "(3, 21)": "Both."})
    guesses = ("4,000", 4000.0, "3, 21", (3, 21), 4)
    assert [asked.mistake(guess) for guess in guesses] == ["No.", "No.", "Both.", "Both.", ""]
