"""Units that do not fit what is measured, each as one defect of a good registration."""

from toolkit.decisions.case import Case
from toolkit.rules.rulebook import Unit, unit_of


def test_units_multiply_and_cancel() -> None:
    steps, calls = Unit((("steps", 1),)), Unit((("calls", 1),))
    assert str(steps.times(steps)) == "steps²"
    assert str(steps.times(steps).times(steps)) == "steps^3"
    assert str(steps.times(steps, -1)) == "ratio"
    assert str(calls.times(steps, -1)) == "calls/steps"
    assert str(Unit().times(steps, -1)) == "1/steps"
    assert str(calls.times(steps)) == "calls·steps"


def test_the_shipped_registration_measures_in_its_declared_units(case: Case) -> None:
    units = {endpoint.unit for endpoint in case.book.endpoints.values()}
    assert units == {"fraction", "ratio", "steps"}
    assert all(str(unit_of(endpoint)) == endpoint.unit for endpoint in case.book.endpoints.values())
