"""The names of the estimators: each is there, typed and written down with its source, and no other is."""

import ast
import inspect
import re
from typing import Any, get_type_hints

import pytest

from tests.conftest import CHECKOUT
from toolkit import estimators


def test_the_readme_lists_every_name_once() -> None:
    readme = (CHECKOUT / "toolkit/estimators/README.md").read_text(encoding="utf-8")
    section = readme.partition("## What there is\n")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"`(\w+)`", section)) == sorted(estimators.__all__)


def test_no_name_is_resolved_late_for_an_editor() -> None:
    """What a module's own `__getattr__` gives, an editor and mypy take for Any: they must not see it."""
    seen = ast.parse(inspect.getsource(estimators)).body
    assert "__getattr__" not in {node.name for node in seen if isinstance(node, ast.FunctionDef)}
    with pytest.raises(AttributeError, match="no attribute 'no_such_estimator'"):
        estimators.no_such_estimator  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", estimators.__all__)
def test_an_estimator_is_a_typed_function_with_a_source(name: str) -> None:
    estimator = getattr(estimators, name)
    hints = get_type_hints(estimator)
    assert estimator.__name__ == name
    assert name in dir(estimators)
    assert set(hints) == {*inspect.signature(estimator).parameters, "return"}
    assert Any not in hints.values()
    assert "Source:" in estimator.__doc__
