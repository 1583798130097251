"""Whoever changes a study and recomputes every hash is noticed where rows or registration say otherwise."""

import pytest

from tests.tampering.__main__ import TAMPERINGS, named, written
from tests.tampering.measure import NOT_ASKED, QUICK, UNNOTICED, cells_of
from tests.tampering.tampering import Tampering

CORE = [tampering for tampering in TAMPERINGS if tampering.quick]


@pytest.mark.parametrize("tampering", CORE, ids=lambda tampering: tampering.name)
def test_a_tampering_is_noticed_as_security_says(tampering: Tampering) -> None:
    said = written()[named(tampering)]
    assert cells_of(tampering, QUICK) == {name: said[name] for name in QUICK}


@pytest.mark.slow
@pytest.mark.parametrize("tampering", TAMPERINGS, ids=lambda tampering: tampering.name)
def test_every_command_notices_what_security_says(tampering: Tampering) -> None:
    assert cells_of(tampering) == written()[named(tampering)]


def test_security_lists_every_tampering_once() -> None:
    assert list(written()) == [named(tampering) for tampering in TAMPERINGS]
    assert len(TAMPERINGS) >= 20


@pytest.mark.parametrize("tampering", TAMPERINGS, ids=lambda tampering: tampering.name)
def test_what_rows_or_registration_contradict_is_noticed_and_nothing_else_is(tampering: Tampering) -> None:
    said = written()[named(tampering)]
    noticing = {name for name, cell in said.items() if cell not in {UNNOTICED, NOT_ASKED}}
    if tampering.limit:
        assert noticing <= {"registers audit", "reproduce", "site build"}, "it is no limit"
    else:
        assert "reproduce" in noticing
        assert noticing & {"registers verify", "verify-prereg"}


def test_a_site_is_built_of_no_study_with_a_row_that_no_verdict_reads_and_is_wrong() -> None:
    (tampering,) = (each for each in TAMPERINGS if each.name == "a schedule of `schedules`")
    assert cells_of(tampering, ("site build",)) == {"site build": "4"}
