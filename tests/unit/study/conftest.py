"""The study that this project played itself, and its registered runs."""

import pytest

from toolkit import api, places
from toolkit.registers.study import Study, open_study
from toolkit.training.specification import Specification


@pytest.fixture(scope="session")
def embedded(home: places.Home) -> Study:
    return open_study(home.study_folder("embedded"))


@pytest.fixture(scope="session")
def registered(embedded: Study, home: places.Home) -> dict[str, Specification]:
    return api.registered_runs(embedded, home)
