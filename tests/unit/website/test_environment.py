"""Templates: nothing that a register says becomes markup."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.website.environment import data, environment, is_figure, words
from toolkit.website.prose import sentence, word

HOSTILE = "</script><script>alert(1)</script><!-- \u2028 & \"'"


def test_text_is_escaped() -> None:
    rendered = environment().from_string("<p>{{ text }}</p>").render(text=HOSTILE)
    assert "<script>" not in rendered
    assert rendered.count("<") == 2


@given(st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.integers()))
def test_a_data_block_holds_no_markup_and_says_what_it_was_given(document: object) -> None:
    block = str(data(document))
    assert not {"<", ">", "&", "\u2028", "\u2029"} & set(block)
    assert json.loads(block) == document


@pytest.mark.parametrize("value", [0, -1.5, "+0.0370", "\u22123", "1,234", "12.5%", "64.0 %"])
def test_numbers_line_up(value: object) -> None:
    assert is_figure(value)


@pytest.mark.parametrize("value", [None, True, "", "s0", "2026-11-20", "1.2.3", "[0, 1]", "C2"])
def test_what_is_no_number_does_not(value: object) -> None:
    assert not is_figure(value)


def test_names_become_words() -> None:
    assert words("not_evaluable") == "not evaluable"


TEXTS = (
    "x'; touch ran; '",
    'x"; touch ran; "',
    "$(touch ran)",
    "`touch ran`",
    "a\\",
    "!! !x",
    "SELECT * FROM runs WHERE run_id = 'it''s'",
    "-x",
    "",
    "ü\n; touch ran",
)


@pytest.mark.parametrize("written", [word, sentence])
@pytest.mark.parametrize("text", TEXTS)
def test_a_shell_reads_a_text_as_it_is(written: Callable[[object], str], text: str, tmp_path: Path) -> None:
    command = ["bash", "-c", f"printf %s {written(text)}"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout == text
    assert not list(tmp_path.iterdir())


def test_what_needs_no_quotes_has_none() -> None:
    assert word("t1-c2-paired-s1") == "t1-c2-paired-s1"
    assert sentence("SELECT 'a'") == "\"SELECT 'a'\""
