"""The draft for the paper's model: it can be frozen and planned, says what the paper says, claims nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, Toolkit
from toolkit import registrations
from toolkit.errors import RuleError
from toolkit.lab.plan import runs_of
from toolkit.lab.play.matrix import EVERYTHING
from toolkit.lab.probing.design import probed_runs
from toolkit.lab.training.recipe import load_recipe, recipe_of
from toolkit.places import HOME_VARIABLE, Home
from toolkit.prereg.registration import is_draft
from toolkit.rules.rulebook import RuleBook, load_rulebook
from toolkit.specification import LanguageModelSpecification

NAME = "qwen3.5-2b"
FOLDER = CHECKOUT / "prereg" / NAME
RULES = (FOLDER / "rules.toml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def book() -> RuleBook:
    return load_rulebook(RULES)


@pytest.fixture(scope="module")
def paper() -> RuleBook:
    folder = CHECKOUT / "prereg" / "paired-rollouts"
    texts = [path.read_text(encoding="utf-8") for path in sorted((folder / "amendments").glob("*.toml"))]
    return load_rulebook((folder / "rules.toml").read_text(encoding="utf-8"), texts)


@pytest.fixture
def plan(toolkit: Toolkit) -> Callable[..., Any]:
    def made(*arguments: object) -> Any:
        result = toolkit("train", "--dry-run", "--study", NAME, *arguments, "--json")
        assert result.code == 0, result.err
        assert "is a draft" in result.err
        return result.json()

    return made


def test_the_draft_can_be_frozen(toolkit: Toolkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it lies here, whether or not the last change of it was committed."""
    (tmp_path / "registers").mkdir()
    shutil.copytree(FOLDER, tmp_path / "prereg" / NAME)
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    result = toolkit("freeze", NAME, "--dry-run", "--json")
    assert result.code == 0, result.err
    assert result.json()["files"] == ["protocol.md", "rules.toml"]


def test_every_tier_of_the_paper_s_matrix_is_in_it(book: RuleBook, paper: RuleBook) -> None:
    """Arm by arm and seed by seed; secondary lines are its own."""

    def lines(of: RuleBook) -> set[Any]:
        return {
            (cell.tier, cell.condition, cell.arms, cell.seeds, cell.scale_rewards, cell.noise)
            for cell in of.plan.cells
        }

    own = {line[1] for line in lines(book) - lines(paper)}
    assert (lines(paper) - lines(book), own) == (set(), {"C2-shared", "C4-shared"})
    for cell in paper.plan.cells:
        mine = book.plan.cell(cell.condition, cell.scale_rewards, cell.arms[0], cell.seeds[0])
        assert mine is not None
        assert cell.fixed.items() <= mine.fixed.items()


# The paper reads H1b and P13 on its own trajectories; P12 was superseded.
OTHERWISE = {"H1b", "P12", "P13"}
NEW = {"L1", "S1", "S2"}


def test_the_rules_are_the_paper_s_at_its_thresholds(book: RuleBook, paper: RuleBook) -> None:
    assert set(book.rules) == set(paper.rules) - {"P12"} | NEW
    for name in set(paper.rules) - OTHERWISE:
        mine, theirs = book.rules[name], paper.rules[name]
        assert mine.kind == theirs.kind, name
        assert [c.test for c in mine.criteria] == [c.test for c in theirs.criteria], name
        assert mine.confidence == theirs.confidence, name
        for endpoint in book.names_of(mine) & set(paper.endpoints):
            one, other = book.endpoints[endpoint], paper.endpoints[endpoint]
            assert (one.arms, one.seeds, one.steps, one.condition) == (
                other.arms,
                other.seeds,
                other.steps,
                other.condition,
            )


def test_its_recipe_and_its_model_are_those_of_the_paper_s_runs(book: RuleBook, published: Any) -> None:
    runs = runs_of(book, EVERYTHING)
    assert len(runs) == 14 + 16 + 8
    recipe = load_recipe(NAME)
    for run in runs:
        assert isinstance(run, LanguageModelSpecification)
        assert recipe_of(run) == recipe
        assert run.model_commit == recipe.revision
    assert recipe.revision in {row["model_commit"] for row in published.rows("runs")}
    assert recipe.sha256() in (FOLDER / "protocol.md").read_text(encoding="utf-8")


def test_the_probe_scores_the_paper_s_trajectories_alone(book: RuleBook) -> None:
    assert book.probe is not None
    runs = runs_of(book, EVERYTHING)
    assert [run.run_id for run in probed_runs(book.probe, runs)] == ["c2-paired-s0", "c2-paired-s1"]
    assert book.probe.steps == (20, 40, 60, 80, 100)
    read = {at for endpoint in book.endpoints.values() for at, _ in endpoint.checkpoints or ()}
    assert read == {"base", "c2-paired-s0", "c2-paired-s1"}


def test_a_probe_of_a_run_that_there_is_not_is_refused(book: RuleBook) -> None:
    other = load_rulebook(RULES.replace('runs = ["c2-paired-s0"', 'runs = ["c2-paired-s9"'))
    assert other.probe is not None
    with pytest.raises(RuleError, match="names a run that its tiers do not have") as raised:
        probed_runs(other.probe, runs_of(book, EVERYTHING))
    assert raised.value.found == "c2-paired-s9"


def test_its_plan_is_what_the_published_runs_took(plan: Callable[..., Any], published: Any) -> None:
    """The 12 deciding runs on H100s: 184.5 hours lie within what is planned for them, and so does each."""
    planned = {(run["condition"], run["arm"], run["seed"]): run for run in plan("--tier", 1)["runs"]}
    rows = [row for row in published.rows("runs") if row["role"] != "replication"]
    assert {(row["condition"], row["arm"], row["seed"]) for row in rows} == set(planned)
    taken = []
    for row in rows:
        run = planned[row["condition"], row["arm"], row["seed"]]
        assert run["episodes"] == row["episodes"], row["run_id"]
        if row["accelerator"] == "H100":
            taken.append((row["wall_time_s"] / 3600, run["hours"]))
    assert len(taken) == 12
    assert all(hours["low"] <= took <= hours["high"] + 1e-3 for took, hours in taken)
    assert sum(took for took, _ in taken) == pytest.approx(sum(hours["mean"] for _, hours in taken), rel=1e-4)


def test_a_draft_is_no_study_and_no_registration_that_is_verified(home: Home, toolkit: Toolkit) -> None:
    assert is_draft(FOLDER)
    assert NAME not in home.studies()
    assert NAME not in {registration.name for registration in registrations.frozen_registrations(home)}
    assert NAME not in {verified["registration"] for verified in toolkit("verify-prereg", "--json").json()}
    (named,) = toolkit("verify-prereg", NAME, "--json").json()
    assert named["verdict"] == "incomplete"


def test_a_draft_is_not_trained(toolkit: Toolkit) -> None:
    toolkit("train", "--study", NAME, "--run", "c2-paired-s0").refused(3, "draft")
