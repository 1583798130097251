"""Rows that contradict themselves are named, whatever hashes lie over them."""

from pathlib import Path

import pytest

from tests.tampering.forger import Forger
from tests.tampering.measure import copy_of
from tests.tampering.of_rows import LARGE, PAIRED, SMALL, adapter, nudged, smallest_first
from toolkit.errors import DamagedError
from toolkit.lab.play.rows import specification_of
from toolkit.places import Home
from toolkit.registers.study import open_study
from toolkit.verification.tied import check_tied


def specified(forger: Forger):
    return {PAIRED: specification_of(forger.study, PAIRED)}


@pytest.mark.parametrize("name", [SMALL, LARGE])
def test_the_rows_of_a_shipped_study_do_not(home: Home, name: str) -> None:
    study = open_study(home.study_folder(name))
    check_tied(study, {PAIRED: specification_of(study, PAIRED)})


@pytest.mark.parametrize(
    ("study", "change", "place"),
    [
        (SMALL, adapter, f"adapters row run_id={PAIRED}, step=4"),
        (
            SMALL,
            lambda forger: forger.set("groups", 0, PAIRED, advantages=lambda old: [9.0, *old[1:]]).seal(),
            f"groups row run_id={PAIRED}, step=1, position=0",
        ),
        (
            LARGE,
            lambda forger: forger.set("groups", 0, PAIRED, advantages=smallest_first).seal(),
            f"groups row run_id={PAIRED}, step=1, position=0",
        ),
        (
            LARGE,
            lambda forger: forger.set("checkpoints", 2, PAIRED, parameters=nudged).seal(),
            f"checkpoints row run_id={PAIRED}, step=40",
        ),
    ],
)
def test_a_row_that_contradicts_itself_is_named(tmp_path: Path, study: str, change, place: str) -> None:
    forger = Forger(copy_of(study, tmp_path), study)
    change(forger)
    with pytest.raises(DamagedError) as error:
        check_tied(forger.study, specified(forger))
    assert error.value.where == place
