"""What the README says of intervals made of seeds is what simulating again gives."""

import math
import re

import pytest

from tests.conftest import CHECKOUT
from tests.golden.measure_seed_coverage import CASES, SIMULATIONS, covered

TEXT = (CHECKOUT / "toolkit/estimators/README.md").read_text(encoding="utf-8")
SAID = {name: float(share) for name, share in re.findall(r"^\| (a .*?) \| ([\d.]+) \|$", TEXT, re.MULTILINE)}
AGAIN = 400


def test_every_case_is_said_once() -> None:
    assert set(SAID) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_an_interval_covers_as_often_as_is_said(name: str) -> None:
    """Other simulations than the table's: their difference is within four standard errors."""
    said = SAID[name] / 100
    error = math.sqrt(said * (1 - said) * (1 / SIMULATIONS + 1 / AGAIN))
    assert abs(covered(name, AGAIN, SIMULATIONS) / AGAIN - said) < 4 * error
