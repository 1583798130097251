"""Studies that tests of several pages read."""

from functools import cache

import pytest

from tests.conftest import CHECKOUT
from tests.described import shipped
from tests.unit.decisions.rows_study import registered_study
from tests.unit.site.reading import made_by
from toolkit import cases
from toolkit.decisions.case import Case
from toolkit.places import Home
from toolkit.site.material import Material
from toolkit.site.page import Page
from toolkit.site.pages import data, luck, registration, rule, run, study
from toolkit.site.pages import home as front_page
from toolkit.verification.registered import open_case


@cache
def opened(name: str) -> Case:
    """Return a shipped study with its registration; whether its rows are whole is tested elsewhere."""
    study = shipped(name)
    return open_case(study, cases.registered_by(study, Home(CHECKOUT)), is_checked=True)


@pytest.fixture(scope="session")
def embedded() -> Case:
    return opened("embedded")


@pytest.fixture(scope="session")
def tiny() -> Case:
    """The smallest shipped study that has every table."""
    return opened("tiny-lm")


@pytest.fixture(scope="session")
def material(home: Home) -> Material:
    """The studies that this project's own pages are about."""
    cases = tuple(opened(name) for name in ("published", "embedded"))
    return Material(cases, tuple(case.study for case in cases), cards=home.cards)


@pytest.fixture(scope="session")
def some(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A study of the published registration that ran one line of its matrix."""
    return open_case(registered_study(tmp_path_factory.mktemp("rows"), case), case.registration)


@pytest.fixture(scope="session")
def pages(case: Case) -> dict[str, Page]:
    """The pages of a site of the published study, those of its rules without charts."""
    material = Material((case,), (case.study,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule, "rule_charts", lambda *_: ())
        return made_by(material, front_page, rule, study, registration, data, luck, run)
