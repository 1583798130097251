"""Registered pictures: predictions with the statistics that they are about, refused if they do not fit."""

from fractions import Fraction

import pytest

from tests.unit.decisions.test_statistic import SPREAD, book, interval, statistic
from toolkit.errors import RuleError

POINT = (
    '[[pictures.P.points]]\nname = "here"\nkind = "some"\npredicted = ["0.5", "0.25"]\nstatistic = "spread"\n'
    'interval = "spread_95"\n'
)
PICTURE = (
    '[pictures.P]\ntitle = "Both"\nup = "seen"\nacross = [{ name = "one", statistic = "how_well" }, '
    '{ name = "other" }]\n' + POINT
)
DECLARED = (
    SPREAD,
    statistic("how_well", "variance(x)", "fraction²"),
    interval("spread_95", "spread", more="resamples = 100\nrng_seed = 1"),
)


def test_a_picture_holds_what_was_predicted_of_each_statistic_exactly() -> None:
    picture = book(*DECLARED, PICTURE).pictures["P"]
    (point,) = picture.points
    assert point.predicted == (Fraction(1, 2), Fraction(1, 4))
    assert [(p.name, p.statistic) for p in picture.across] == [("one", "how_well"), ("other", "")]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('statistic = "spread"', 'statistic = "unknown"', "not declared"),
        ('statistic = "how_well"', 'statistic = "x"', "not declared"),
        ('"spread_95"', '"another"', "not declared"),
        ('predicted = ["0.5", "0.25"]', 'predicted = ["0.5"]', "a number for each"),
        ('statistic = "spread"', 'statistic = "how_well"', "interval of another statistic"),
        (POINT, "", "a number for each"),
        ('kind = "some"', 'kind = "some"\ncolour = "red"', "does not know"),
    ],
)
def test_a_picture_that_does_not_fit_is_refused(old: str, new: str, words: str) -> None:
    with pytest.raises(RuleError, match=words):
        book(*DECLARED, PICTURE.replace(old, new))
