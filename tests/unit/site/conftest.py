"""Studies that tests of several pages read."""

import pytest

from tests.unit.decisions.rows_study import registered_study
from toolkit import api
from toolkit.decisions.case import Case
from toolkit.places import Home
from toolkit.verification.registered import open_case


@pytest.fixture(scope="session")
def embedded(home: Home) -> Case:
    return api.load_cases(("embedded",), home)[0]


@pytest.fixture(scope="session")
def some(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A study of the published registration that ran one line of its matrix."""
    return open_case(registered_study(tmp_path_factory.mktemp("rows"), case), case.registration)
