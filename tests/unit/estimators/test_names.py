"""The names of the estimators: each is there, each is written down, and no other is."""

from __future__ import annotations

import re

import pytest

from tests.conftest import CHECKOUT
from toolkit import estimators

README = CHECKOUT / "toolkit" / "estimators" / "README.md"


def tabulated() -> list[str]:
    """Return the names in the README's table of what there is."""
    section = README.read_text(encoding="utf-8").partition("## What there is\n")[2].partition("\n## ")[0]
    return re.findall(r"`(\w+)`", section)


def test_the_readme_lists_every_name_once() -> None:
    assert sorted(tabulated()) == sorted(estimators.__all__)


@pytest.mark.parametrize("name", estimators.__all__)
def test_a_name_is_a_function_of_its_own(name: str) -> None:
    assert callable(getattr(estimators, name))
    assert getattr(estimators, name).__name__ == name


def test_another_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'median'"):
        _ = estimators.median
