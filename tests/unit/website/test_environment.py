"""Templates: nothing that a register says becomes markup."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from toolkit.website.environment import data, environment, words

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


def test_names_become_words() -> None:
    assert words("not_evaluable") == "not evaluable"
