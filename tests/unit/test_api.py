"""What programs call does what the command line does, and imports nothing heavy."""

import importlib.util
import inspect
import json
import logging
import os
import re
import signal
import subprocess
import sys

import pytest

import toolkit
from tests.conftest import run
from toolkit import cases
from toolkit.decisions.case import Case
from toolkit.errors import DamagedError, IncompleteError
from toolkit.places import Home

FUNCTIONS = [name for name in toolkit.__all__ if inspect.isfunction(getattr(toolkit, name))]


def test_a_program_decides_as_the_command_does(home: Home) -> None:
    decision = toolkit.decide("H2a", "published", home)
    assert [decision.as_dict()] == run("decide", "H2a", "--study", "published", "--json").json()


def test_a_program_decides_everything_as_the_command_does(home: Home) -> None:
    studies = ("published", "tiny-lm")
    decisions = [made for study in studies for made in toolkit.decide_all(study, home)]
    named = [word for study in studies for word in ("--study", study)]
    assert [made.as_dict() for made in decisions] == run("decide", *named, "--all", "--json").json()


def test_a_study_that_cannot_be_decided_beside_another_says_why(home: Home, monkeypatch) -> None:
    def refuse(case: Case) -> None:
        raise DamagedError("rows differ", expected=1, found=2, where=case.study.name, remedy="restore")

    monkeypatch.setattr(Case, "decide_all", refuse)
    with pytest.raises(DamagedError, match="rows differ") as refused:
        cases.decide_rules((), ("tiny-lm", "published"), home)
    assert (refused.value.found, refused.value.where, refused.value.remedy) == ("2", "tiny-lm", "restore")
    monkeypatch.setattr(Case, "decide_all", lambda _: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(IncompleteError, match="was killed"):
        cases.decide_rules((), ("tiny-lm", "published"), home)


@pytest.mark.parametrize(("study", "rule"), [("published", "H2a"), ("embedded", "P13")])
def test_a_program_explains_as_the_command_does(study: str, rule: str) -> None:
    explained = toolkit.explain(rule, study).as_dict()
    assert [explained] == run("explain", rule, "--study", study, "--json").json()


def test_a_program_verifies_as_the_command_does() -> None:
    made = json.dumps(toolkit.verify("tiny-lm").as_dict(), default=lambda time: f"{time:%Y-%m-%dT%H:%M:%SZ}")
    assert [json.loads(made)] == run("verify-prereg", "tiny-lm", "--json").json()


def test_a_study_can_be_named_by_name_by_path_or_opened(home: Home) -> None:
    opened = toolkit.open_study("published")
    ways = ("published", home.registers / "published", str(home.registers / "published"), opened, None)
    assert len({toolkit.decide("H2a", study).as_dict()["verdict"] for study in ways}) == 1


def test_results_are_frozen(home: Home) -> None:
    results = (toolkit.decide("H2a"), toolkit.explain("H2a"), toolkit.verify("tiny-lm"), home)
    for result in (*results, toolkit.open_study("published")):
        with pytest.raises(AttributeError):
            result.name = "another"  # type: ignore[union-attr,misc]


def test_opening_a_study_and_deciding_import_nothing_heavy() -> None:
    program = (
        "import sys, toolkit; toolkit.open_study('published'); toolkit.decide('H2a'); toolkit.explain('P4')\n"
        "print(*{'torch', 'datasets', 'altair', 'duckdb', 'polars', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_importing_the_package_loads_none_of_its_modules() -> None:
    program = "import sys, toolkit; print(*(name for name in sys.modules if name.startswith('toolkit.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_every_public_name_is_there_and_is_completed() -> None:
    assert dir(toolkit) == toolkit.__all__ == sorted(toolkit.__all__)
    assert all(getattr(toolkit, name) is not None for name in toolkit.__all__)
    with pytest.raises(AttributeError, match="no attribute 'decided'"):
        _ = toolkit.decided  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_says_what_it_takes_gives_and_raises(name: str) -> None:
    function = getattr(toolkit, name)
    text = inspect.getdoc(function) or ""
    sections = {
        found[1]: found[2] for found in re.finditer(r"^(\w+):\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
    }
    taken = re.findall(r"^    (\w+(?:, \w+)*): ", sections["Args"], re.MULTILINE)
    assert [each for names in taken for each in names.split(", ")] == list(
        inspect.signature(function).parameters
    )
    assert {"Raises", "Examples"} <= sections.keys()
    assert "Returns" in sections or text.startswith("Return ")
    annotations = inspect.get_annotations(function)
    assert "Any" not in " ".join(map(str, annotations.values()))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_examples_of_a_public_function_hold(name: str) -> None:
    import doctest

    (found,) = doctest.DocTestFinder(recurse=False).find(
        getattr(toolkit, name), name, globs={"toolkit": toolkit, "print": print}
    )
    assert found.examples
    assert doctest.DocTestRunner().run(found).failed == 0


def test_a_table_is_the_same_rows_in_pandas_as_in_polars() -> None:
    study = toolkit.open_study("published")
    frame = study.pandas("evaluations")
    known = frame.astype(object).where(frame.notna(), None)
    assert known.to_dict("records") == study.polars("evaluations").collect().to_dicts()
    assert str(frame["recovered"].dtype) == "int32[pyarrow]"  # although some are missing


@pytest.mark.parametrize(("package", "asked"), [("pandas", "pandas"), ("altair", "plot")])
def test_a_package_that_is_not_installed_is_named_with_how_to_get_it(monkeypatch, package, asked) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("toolkit.cases.find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(IncompleteError, match=f"{package} is not installed") as refused:
        getattr(toolkit.open_study("published"), asked)("H2a")
    assert "pip install" in str(refused.value.remedy)


def test_a_chart_shows_the_estimate_of_every_seed_its_mean_and_its_interval() -> None:
    shown = toolkit.open_study("published").plot("H2a").to_dict()
    values = [value for layer in shown["layer"] for value in layer["data"]["values"]]
    # The differences of the seeds, their mean and the interval that the paper prints.
    seeds = {value["row"]: value["value"] for value in values if value.get("row", "mean") != "mean"}
    assert seeds == {"seed 0": 0.05391, "seed 1": -0.00156, "seed 2": 0.05859}
    assert {value["value"] for value in values if value.get("row") == "mean" and "value" in value} == {
        0.03698
    }
    assert {(value["low"], value["high"]) for value in values if "low" in value} == {(-0.0039, 0.0779)}
    assert {value["at"] for value in values if "at" in value} == {0, 0.03}


def test_a_rule_without_an_estimate_has_no_chart_and_the_error_says_who_explains_it() -> None:
    with pytest.raises(IncompleteError, match="no estimate to draw") as refused:
        toolkit.open_study("published").plot("gate2")
    assert "toolkit.explain('gate2', 'published')" in str(refused.value.remedy)


def test_a_program_freezes_and_imports_and_gets_a_decided_study(tmp_path, caplog) -> None:
    table = tmp_path / "log.csv"
    rows = [
        f"{arm},{seed},{task},{int((task + seed) % 5 < (4 if arm == 'new' else 2))},notes"
        for arm in ("new", "old")
        for seed in (0, 1, 2)
        for task in range(10)
    ]
    table.write_text("\n".join(["strategy,seed,task,success,comment", *rows]) + "\n", encoding="utf-8")
    home = tmp_path / "home"
    assert run("new-study", "mine", "--table", table, "--into", home).code == 0
    (home / "rehearsals/mine.pilots.json").unlink()  # pilot and log are one here
    for path in (*home.glob("prereg/mine/*"), *home.glob("cards/*")):
        path.write_text(path.read_text(encoding="utf-8").replace("FILL IN", "said"), encoding="utf-8")
    frozen = toolkit.freeze("mine", Home(home), demonstration=True)
    assert (frozen.standing, len(frozen.tokens)) == ("demonstration", 2)
    with caplog.at_level(logging.WARNING):
        study = toolkit.import_table("mine", table, Home(home))
    assert "columns that no register takes: comment" in caplog.text
    decided = {row["rule"]: row["verdict"] for row in study.rows("decisions")}
    assert decided == {made.rule: made.verdict for made in toolkit.decide_all(study, Home(home))}
