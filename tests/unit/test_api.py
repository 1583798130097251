"""What programs call does what the command line does, and imports nothing heavy."""

import subprocess
import sys

import pytest

import toolkit
from tests.conftest import run
from toolkit import api
from toolkit.errors import UsageError
from toolkit.places import Home


def test_a_program_decides_as_the_command_does(home: Home) -> None:
    (decision,) = api.decide(["H2a"], ["published"], home)
    assert [decision.as_dict()] == run("decide", "H2a", "--study", "published", "--json").json()


def test_a_rule_that_a_named_study_lacks_is_refused_and_elsewhere_left_out(home: Home) -> None:
    cases = api.load_cases((), home)
    asked = api.rules_asked(cases, ["H6"], everywhere=False)
    assert [(case.study.name, rule) for case, rule in asked] == [("published", "H6")]
    with pytest.raises(UsageError, match="no rule 'H6'"):
        api.rules_asked(cases, ["H6"], everywhere=True)


def test_a_study_says_in_a_line_what_it_is() -> None:
    shown = repr(toolkit.open_study("embedded"))
    assert "embedded" in shown
    assert "episodes" in shown
    assert len(shown) < 500


def test_opening_a_study_and_deciding_import_nothing_heavy() -> None:
    program = (
        "import sys, toolkit; from toolkit import api; toolkit.open_study('published'); api.decide(['H2a'])\n"
        "print(*{'torch', 'datasets', 'altair', 'duckdb', 'polars'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
