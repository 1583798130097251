"""The draft of the small model that learns: it can be frozen, is of what is shipped, and claims nothing."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Toolkit
from toolkit.decisions.rulebook import RuleBook, load_rulebook
from toolkit.places import HOME_VARIABLE, Home
from toolkit.policies.language_model.loading import model_path
from toolkit.policies.language_model.opening import folder_sha256
from toolkit.prereg.registration import is_draft
from toolkit.study.plan.training_plan import runs_of
from toolkit.study.play.matrix import EVERYTHING
from toolkit.study.play.segments import sets_of
from toolkit.study.probing.design import probed_runs
from toolkit.training.recipe import load_recipe
from toolkit.training.specification import LanguageModelSpecification

NAME, START = "small-lm", "small-soft"
FOLDER = CHECKOUT / "prereg" / NAME


@pytest.fixture(scope="module")
def book() -> RuleBook:
    return load_rulebook((FOLDER / "rules.toml").read_text(encoding="utf-8"))


def test_the_draft_can_be_frozen(toolkit: Toolkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it lies here, whether or not the last change of it was committed."""
    (tmp_path / "registers").mkdir()
    shutil.copytree(FOLDER, tmp_path / "prereg" / NAME)
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    result = toolkit("freeze", NAME, "--dry-run", "--json")
    assert result.code == 0, result.err


def test_its_runs_start_from_the_shipped_model_with_the_shipped_recipe(book: RuleBook) -> None:
    recipe, commit = load_recipe(START), folder_sha256(Path(model_path(START)))
    protocol = (FOLDER / "protocol.md").read_text(encoding="utf-8")
    assert recipe.sha256() in protocol
    assert commit in protocol
    for run in runs_of(book, EVERYTHING):
        assert isinstance(run, LanguageModelSpecification)
        assert (run.settings, run.model_commit) == (recipe, commit)
        assert (run.sampling, run.sub_requests) == ("shared", 1)


def test_pairs_and_evaluations_are_as_its_rules_read_them(book: RuleBook) -> None:
    runs = runs_of(book, EVERYTHING)
    pairs = {c: {r.seed for r in runs if r.condition == c and r.arm == "paired"} for c in ("C2", "C4")}
    for condition, seeds in pairs.items():
        assert len(seeds) >= 8
        assert seeds == {r.seed for r in runs if r.condition == condition and r.arm == "independent"}
    read = [endpoint for endpoint in book.endpoints.values() if endpoint.tasks]
    declared = {(tuple(sorted(e.where.items())), e.tasks, e.schedules) for e in read}
    played = {
        ((("phase", each.phase), ("pool", each.pool), ("regime", each.regime)), each.tasks, each.schedules)
        for run in runs
        for step in run.ends
        for each in sets_of(run, step)
    }
    assert played == declared


def test_the_probe_has_the_start_and_five_steps(book: RuleBook) -> None:
    assert book.probe is not None
    (run,) = probed_runs(book.probe, runs_of(book, EVERYTHING))
    assert run.ends == (0, *book.probe.steps)
    read = {at for endpoint in book.endpoints.values() for at in endpoint.checkpoints or ()}
    assert read == {("base", 0), *((run.run_id, step) for step in book.probe.steps)}


def test_a_draft_is_no_study_and_is_not_trained(home: Home, toolkit: Toolkit) -> None:
    assert is_draft(FOLDER)
    assert NAME not in home.studies()
    assert NAME not in {verified["registration"] for verified in toolkit("verify-prereg", "--json").json()}
    toolkit("study", "run", NAME).refused(3, "draft")
