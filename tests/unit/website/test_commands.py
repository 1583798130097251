"""Commands to copy: a shell takes every text for one word, and runs nothing of it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.website.prose import sentence, word

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
