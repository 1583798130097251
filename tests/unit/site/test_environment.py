"""Templates: nothing that a register says becomes markup."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.site.environment import data, is_figure, sentence, word


@given(st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.integers()))
def test_a_data_block_holds_no_markup_and_says_what_it_was_given(document: object) -> None:
    block = str(data(document))
    assert not {"<", ">", "&", "\u2028", "\u2029"} & set(block)
    assert json.loads(block) == document


@pytest.mark.parametrize(
    ("values", "line_up"),
    [
        ((0, -1.5, "+0.0370", "\u22123", "1,234", "12.5%", "64.0 %"), True),
        ((None, True, "", "s0", "2026-11-20", "1.2.3", "[0, 1]", "C2"), False),
    ],
)
def test_numbers_alone_line_up(values: tuple[object, ...], line_up: bool) -> None:
    assert [is_figure(value) for value in values] == [line_up] * len(values)


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
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == text
    assert not list(tmp_path.iterdir())


def test_what_needs_no_quotes_has_none() -> None:
    assert word("t1-c2-paired-s1") == "t1-c2-paired-s1"
    assert sentence("SELECT 'a'") == "\"SELECT 'a'\""
