"""How often intervals of the drift ratio cover the truth, as the estimators' README says."""

import math
import re

import pytest

from tests.conftest import CHECKOUT
from tests.golden.measure_drift_coverage import measure


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "percentiles", "interval"), [(2, 88.5, 94.0), (24, 21.0, 89.0)])
def test_the_readme_says_how_often_intervals_cover(batch: int, percentiles: float, interval: float) -> None:
    """Three Monte Carlo errors of 200 simulations, the libraries of another machine being others."""
    *_, by_percentiles, covered = measure(64, batch, common=True)
    for found, printed in ((by_percentiles, percentiles), (covered, interval)):
        assert found == pytest.approx(printed, abs=300 * math.sqrt(0.25 / 200))
    readme = (CHECKOUT / "toolkit/estimators/README.md").read_text("utf-8")
    assert re.search(rf"\| 64 \| {batch} \| common \|.*\| {percentiles} \| {interval} \|", readme)
