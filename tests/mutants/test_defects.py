"""The list of defects stays true to the code that it is about."""

from __future__ import annotations

from tests.mutants.defects import load


def test_every_defect_fits_the_code_and_is_named_once() -> None:
    defects = load()
    assert [defect.stale for defect in defects if defect.stale] == []
    assert len({(defect.room, defect.name) for defect in defects}) == len(defects)
