"""From recorded rollouts through a language model's scores and evidence to evidence of the probe."""

import copy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.unit.lab.probe.designs import FLIP_RATE, design, groups_of, recorded_numbers
from tests.unit.lab.probe.tiny import tiny_model, transcripts
from tests.unit.stack import require_stack
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.lab.probe.design import ACTIONS, ALL, OUTCOME, TRANSITION
from toolkit.lab.probe.evidence import GramEvidence, Scored, gather
from toolkit.lab.probe.language_model import probe_language_model
from toolkit.lab.probe.lora import Coordinates, Scorer
from toolkit.lab.probe.recorded import Recorded

require_stack()


from toolkit.structs import replace  # noqa: E402

DESIGN = design(outcome_tasks=6, transition_tasks=3, size=4)
GROUPS = groups_of(DESIGN)
Tasks = dict[str, list[Recorded]]
Evidence = dict[str, GramEvidence]


@pytest.fixture(scope="module")
def shared() -> Any:
    return tiny_model()


@pytest.fixture
def model(shared: Any) -> Any:
    return copy.deepcopy(shared)


@pytest.fixture(scope="module")
def recorded() -> Tasks:
    """Transcripts of unlike lengths; some importance weights are zero."""
    found: Tasks = {}
    for one in DESIGN.sets:
        rewards, weights, _ = recorded_numbers(one.tasks, one.rollouts)
        said = [tuple(transcripts(range(9, 9 + one.rollouts), task)) for task in range(one.tasks)]
        parts = zip(said, map(tuple, rewards), map(tuple, weights), strict=True)
        found[one.noise] = [Recorded(*each) for each in parts]
    return found


def probe(scorer: Any, recorded: dict, folder: Path, **given: Any) -> Evidence:
    sets = recorded[OUTCOME], recorded[TRANSITION]
    return probe_language_model(
        scorer, given.pop("design", DESIGN), *sets, given.pop("groups", GROUPS), folder=folder, **given
    )


@pytest.fixture(scope="module")
def evidence(shared: Any, recorded: Tasks, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    folder = tmp_path_factory.mktemp("scores")
    found = probe(Scorer(shared), recorded, folder)
    assert not list(folder.iterdir())
    return found


def test_the_evidence_is_that_of_scores_in_memory(model: Any, recorded: Tasks, evidence: Evidence) -> None:
    tasks = recorded[OUTCOME]
    with Scorer(model) as scorer:
        scores = np.array([list(scorer.scores(task.transcripts)) for task in tasks])
    rewards, weights = (np.array([getattr(task, name) for task in tasks]) for name in ("rewards", "weights"))
    tokens = np.array([[sum(one.chosen) for one in task.transcripts] for task in tasks])
    whole = {ALL: slice(0, scores.shape[-1])}
    scored = Scored(rewards, {ALL: tokens}, weights, scores)
    expected = gather(OUTCOME, scored, whole, [ALL], flip_rate=FLIP_RATE, groups=None)[ALL]
    found = evidence[OUTCOME]
    assert np.array_equal(found.tokens, expected.tokens)
    assert np.array_equal(found.rewards, rewards)
    assert np.array_equal(found.weights, weights)
    assert np.abs(found.gram - expected.gram).max() < 1e-12 * expected.gram.max()
    for name, products in expected.products.items():
        assert np.abs(found.products[name] - products).max() < 1e-12 * products.max()


class Stub:
    """A scorer without a model: every score is the rollout's number, in coordinates of one's choice."""

    def __init__(self, names: list[str] | None = None, bad: int | None = None) -> None:
        self.names, self.bad, self.finished = names or ["a"], bad, False
        self.passes = 0

    def identify(self, _: Any) -> Coordinates:
        name = self.names.pop(0) if len(self.names) > 1 else self.names[0]
        return Coordinates((name,), ((3, 2),))

    def scores(self, transcripts: Any, batch: int) -> Iterator[np.ndarray]:
        assert batch > 0
        for at, one in enumerate(transcripts):
            self.passes += 1
            value = np.nan if self.passes == self.bad else at + len(one.tokens) / 100
            yield np.full(6, value, dtype=np.float32)

    def finish(self) -> str:
        self.finished = True
        return ""


@pytest.mark.parametrize(
    ("change", "text", "error"),
    [
        (lambda r: {**r, TRANSITION: r[OUTCOME][:3]}, "lacks 3 of its", IncompleteError),
        (lambda r: {**r, OUTCOME: r[OUTCOME][:5]}, "tasks are missing", IncompleteError),
        (lambda r: {**r, TRANSITION: []}, "tasks are missing", IncompleteError),
        (lambda r: {**r, OUTCOME: r[OUTCOME] * 2}, "more tasks", UsageError),
        (lambda r: {**r, OUTCOME: r[TRANSITION]}, "more rollouts", UsageError),
    ],
    ids=["schedule", "task", "none", "more tasks", "more rollouts"],
)
def test_rollouts_that_are_not_those_of_the_set_are_refused(recorded, tmp_path, change, text, error) -> None:
    scorer = Stub()
    with pytest.raises(error, match=text):
        probe(scorer, change(recorded), tmp_path)
    assert not list(tmp_path.iterdir())
    assert not scorer.finished


@pytest.mark.parametrize(
    ("names", "known", "where"), [(["a", "b"], None, "transition noise"), (["a"], "0" * 64, "outcome noise")]
)
def test_both_sets_and_all_checkpoints_have_the_same_coordinates(
    recorded: Tasks, tmp_path: Path, names: list[str], known: str | None, where: str
) -> None:
    with pytest.raises(DamagedError, match="mismatched coordinate sets") as caught:
        probe(Stub(names), recorded, tmp_path, names_sha256=known)
    assert caught.value.where == where


def test_a_score_that_is_no_number_leaves_no_file(recorded: Tasks, tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match="not finite") as caught:
        probe(Stub(bad=24 + 16 + 6), recorded, tmp_path)
    assert caught.value.where == "transition noise, task 1, row 5, coordinate 0"
    assert not list(tmp_path.iterdir())


def test_a_model_has_no_coordinates_of_actions(recorded: Tasks, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no coordinates of actions"):
        probe(SimpleNamespace(), recorded, tmp_path, design=replace(DESIGN, scored=(ALL, ACTIONS)))
