"""What the documents say of the size of the code is so."""

import pytest

from tests import counts


def test_the_published_counts_are_those_of_the_code() -> None:
    published, counted = (counts.numbers(text) for text in (counts.PAGE.read_text(), counts.on_page(counts.table())))
    assert len(published) == len(counts.COUNTS) * 3
    assert published == pytest.approx(counted, rel=0.05, abs=4), "Run: python -m tests.counts"
