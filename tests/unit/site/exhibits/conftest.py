"""The studies that this project's own pages are about."""

import pytest

from tests.unit.site.conftest import opened
from toolkit.decisions.case import Case
from toolkit.places import Home
from toolkit.site.material import Material


@pytest.fixture(scope="session")
def material(home: Home) -> Material:
    cases = tuple(opened(name) for name in ("published", "embedded"))
    return Material(cases, tuple(case.study for case in cases), cards=home.cards)


@pytest.fixture(scope="session")
def embedded(material: Material) -> Case:
    return next(case for case in material.cases if case.study.name == "embedded")
