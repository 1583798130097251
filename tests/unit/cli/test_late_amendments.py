"""What an amendment does to verdicts: before the runs it binds, after them it stands beside them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, Toolkit
from tests.unit.decisions.rows_study import ROW_RULES, Run, write_rows_study
from tests.unit.decisions.study import rule
from tests.unit.prereg import drafts
from tests.unit.prereg.drafts import amendment
from toolkit.places import HOME_VARIABLE, Home
from toolkit.prereg import demonstration
from toolkit.prereg.registration import load_registration
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.study import open_study
from toolkit.structs import replace
from toolkit.verification import registered

HIGH, LOW = "mean(gap) >= 0.9", "mean(gap) >= -0.9"
LOWERED = amendment(body=rule("H", LOW))
Clock = Callable[[float], None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Set the clock of demonstrations to so many hours ago."""

    def set_to(hours: float) -> None:
        class Earlier(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:
                return datetime.now(tz) - timedelta(hours=hours)

        monkeypatch.setattr(demonstration, "datetime", Earlier)

    return set_to


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Path:
    """A registration frozen three hours ago, and a study under it whose runs were launched an hour ago."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    folder = drafts.write_draft(
        tmp_path / "prereg", rules=ROW_RULES + rule("H", HIGH) + rule("G", "passes(H)")
    )
    clock(3)
    drafts.demonstrate(folder)
    launch(folder, datetime.now(UTC) - timedelta(hours=1))
    return folder


def launch(folder: Path, at: datetime | None) -> None:
    """Write the study's registers; its runs were launched at a moment, or nobody knows when."""
    facts = {} if at is None else {"launched_at": at}
    runs = [Run("X", arm, seed, facts) for arm in ("independent", "paired") for seed in (0, 1)]
    ref = RegistrationRef("small", load_registration(folder).sha256, {})
    write_rows_study(folder.parent.parent / "registers" / "rows", runs, registration=ref)


def record(folder: Path, content: bytes) -> None:
    """Record an amendment as somebody would who does not ask `toolkit amend`."""
    drafts.add_to(folder, content, *drafts.demonstrators())


def decided(toolkit: Toolkit, *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
    result = toolkit("decide", "--all", "--study", "rows", "--json", *options)
    return result.code, {document["rule"]: document for document in result.json()}


def test_an_amendment_before_the_runs_binds(toolkit: Toolkit, small: Path, clock: Clock) -> None:
    assert decided(toolkit)[1]["H"]["verdict"] == "miss"
    clock(2)
    record(small, LOWERED)
    code, rules = decided(toolkit, "--require", "demonstration")
    assert (code, rules["H"]["verdict"], rules["H"]["amended_by"]) == (0, "pass", "A1")
    assert "exploratory" not in rules["H"]


def without_its_token(folder: Path) -> None:
    next((folder / "evidence").glob("A1.*.tsr")).unlink()


def of_unknown_launch(folder: Path) -> None:
    launch(folder, None)


LATE: dict[str, tuple[float, dict[str, Any], Callable[[Path], None], tuple[int, str, int]]] = {
    "a late one": (0, {}, lambda _: None, (1, "failed", 1)),
    "a late one that says so": (0, {"after_runs": True}, lambda _: None, (0, "demonstration", 0)),
    "one whose token is gone, under an early date": (2, {}, without_its_token, (0, "incomplete", 3)),
    "one under runs of unknown launch": (2, {}, of_unknown_launch, (0, "incomplete", 3)),
}


@pytest.mark.parametrize("which", LATE)
def test_an_amendment_that_nothing_shows_to_be_early_replaces_no_verdict(
    toolkit: Toolkit, small: Path, clock: Clock, which: str
) -> None:
    hours, facts, then, (code, standing, verified) = LATE[which]
    clock(hours)
    # As it would have been dated then: between midnight and one, that was yesterday.
    dated = str((datetime.now(UTC) - timedelta(hours=hours)).date())
    record(small, amendment(body=rule("H", LOW), dated=dated, **facts))
    then(small)
    ended, rules = decided(toolkit)
    assert (ended, rules["H"]["verdict"], rules["G"]["verdict"]) == (code, "miss", "miss")
    for name in ("H", "G"):
        (changed,) = rules[name]["exploratory"]
        assert (changed["amendment"], changed["verdict"]) == ("A1", "pass")
        assert rules[name]["registration"]["standing"] == standing
    assert "amended_by" not in rules["H"]
    shown = toolkit("explain", "H", "--study", "rows")
    assert (shown.code, "mean(gap) >= 0.9" in shown.out) == (code, True)
    assert "exploratory, as amendment A1 would have it after the runs: pass" in shown.out
    assert toolkit("verify-prereg", "small").code == verified


def test_a_rule_added_after_the_runs_is_decided_and_marked(toolkit, small, clock) -> None:
    clock(0)
    record(small, amendment("A1", replaces=[], adds=["N"], body=rule("N", HIGH), after_runs=True))
    code, rules = decided(toolkit, "--fail-on-miss")
    assert (rules["N"]["verdict"], rules["N"]["is_exploratory"], "is_exploratory" in rules["H"]) == (
        "miss",
        True,
        False,
    )
    assert code == 1  # H and G are missed
    alone = toolkit("decide", "N", "--study", "rows", "--fail-on-miss")
    assert (alone.code, "N: exploratory: the rule was added after the runs" in alone.out) == (0, True)
    stored = registered.open_case(open_study(small.parents[1] / "registers/rows"), load_registration(small))
    assert [made.rule for made in stored.binding] == ["H", "G"]  # what is written beside a study's rows
    told = toolkit("verify-prereg", "small").out
    assert "A1: made after runs, as it says itself: its rules are exploratory" in told


@pytest.mark.parametrize("where", ["registers", "runs"])
def test_amend_sees_the_runs_and_asks_for_after_runs(toolkit, small, clock, tmp_path, where) -> None:
    clock(0)
    if where == "runs":  # played, and not in the registers yet
        launch(small, None)
        (tmp_path / "registers" / "rows").rename(tmp_path / "elsewhere")
        attempt = tmp_path / "runs" / "small" / "x-paired-s0" / "attempt-1.json"
        attempt.parent.mkdir(parents=True)
        attempt.write_text("{}")
    file = tmp_path / "A1.toml"
    file.write_bytes(LOWERED)
    refused = toolkit("amend", "small", file)
    refused.refused(2, "amendment A1 would come after them, and bind nothing")
    assert "give --after-runs" in refused.err
    assert load_registration(small).amendments == ()
    done = toolkit("amend", "small", file, "--after-runs")
    assert (done.code, "MADE AFTER RUNS: it binds nothing" in done.out) == (0, True), done.err
    (added,) = load_registration(small).amendments
    assert (added.after_runs, added.rules.count("after_runs = true")) == (True, 1)


def test_an_amendment_on_data_to_come_needs_no_confession() -> None:
    home = Home(CHECKOUT)
    whole = load_registration(home.registration_folder("embedded"))
    before, (amendment,) = replace(whole, amendments=()), whole.amendments
    study = open_study(home.study_folder("embedded"))
    tables = {name: table for name, table in study.manifest.tables.items() if not name.startswith("probe")}
    unprobed = replace(study, manifest=replace(study.manifest, tables=tables))
    assert registered.is_on_new_data(before, amendment, [unprobed])
    assert not registered.is_on_new_data(before, amendment, [study])
    changing = replace(amendment, restates=("H2a",))
    assert not registered.is_on_new_data(before, changing, [unprobed])


def test_a_gate_in_ci_asks_for_a_standing(toolkit: Toolkit, small: Path) -> None:
    for command in (("decide", "H"), ("verify-prereg", "small")):
        assert toolkit(*command, "--require", "demonstration").code == 0
        refused = toolkit(*command, "--require", "public")
        assert (refused.code, "small stands on less than public" in refused.err) == (1, True)
        assert refused.out == toolkit(*command).out
    without_anything = small / "evidence"
    for token in without_anything.glob("*.tsr"):
        token.unlink()
    for command in (("decide", "H"), ("verify-prereg", "small")):
        refused = toolkit(*command, "--require", "demonstration")
        assert (refused.code, "incomplete: the token is not here" in refused.err) == (1, True)
