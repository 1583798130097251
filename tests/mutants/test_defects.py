"""The list of defects stays true to the code that it is about."""

from types import SimpleNamespace

import pytest

from tests.mutants.__main__ import judged
from tests.mutants.defects import ROOT, load
from toolkit.structs import replace


def test_every_defect_fits_the_code_and_is_named_once() -> None:
    defects = load()
    assert [defect.stale for defect in defects if defect.stale] == []
    assert len({(defect.file, defect.name) for defect in defects}) == len(defects)


@pytest.mark.parametrize(("status", "fate"), [(0, "survived"), (1, "killed"), (2, "stale"), (-1, "stale")])
def test_a_defect_is_killed_where_a_test_fails_and_by_nothing_else(status: int, fate: str) -> None:
    files: list[str] = []
    bench = SimpleNamespace(tree=ROOT, run=lambda _: (status, ""), replace=lambda _, text: files.append(text))
    defect = load()[0]
    assert judged(bench, defect)[0] == fate
    assert files == [files[1].replace(defect.old, defect.new), files[1]]


@pytest.mark.parametrize("change", [{"old": "?!"}, {"old": "e"}, {"tests": ("tests/none.py",)}])
def test_a_defect_that_fits_no_more_is_stale(change: dict[str, object]) -> None:
    assert replace(load()[0], **change).stale
