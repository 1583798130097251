"""The words of the front page: shown only while the verdicts bear them."""

from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from toolkit import api
from toolkit.decisions.case import Case
from toolkit.errors import DamagedError
from toolkit.website.front import read_front

WORDS = """
title = "A title"
question = "A question?"
order = ["published"]
[[answer]]
text = "It missed."
verdicts = { "published/H2a" = "VERDICT" }
"""


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return api.load_cases(("published",))


def write(folder: Path, text: str) -> Path:
    (folder / "site.toml").write_text(text, encoding="utf-8")
    return folder


def test_a_sentence_names_the_rules_that_bear_it_and_ordered_studies_come_first(
    tmp_path: Path, cases: list[Case]
) -> None:
    assert read_front(tmp_path, cases) is None
    front = read_front(write(tmp_path, WORDS.replace("VERDICT", "miss")), cases)
    assert front is not None
    assert [(s.text, s.rests_on) for s in front.answer] == [("It missed.", (("published", "H2a"),))]
    assert sorted(["another", "published"], key=front.place) == ["published", "another"]
    front = read_front(write(tmp_path, WORDS.replace("published/H2a", "elsewhere/H2a")), cases)
    assert front is not None
    assert front.answer == ()


def test_a_sentence_that_says_another_verdict_is_refused(tmp_path: Path, cases: list[Case]) -> None:
    with pytest.raises(DamagedError, match="another verdict") as refused:
        read_front(write(tmp_path, WORDS.replace("VERDICT", "pass")), cases)
    assert "published/H2a miss" in str(refused.value)


@pytest.mark.parametrize("text", ["title =", "title = 'a'", WORDS.replace("verdicts", "verdict")])
def test_words_that_cannot_be_read_are_damaged(tmp_path: Path, cases: list[Case], text: str) -> None:
    with pytest.raises(DamagedError, match="front page cannot be read"):
        read_front(write(tmp_path, text), cases)


def test_the_shipped_words_are_borne_by_the_shipped_verdicts() -> None:
    front = read_front(CHECKOUT / "cards", api.load_cases(()))
    assert front is not None
    assert len(front.answer) == 6
