"""From back-office episodes through a language model's scores and evidence to evidence of the probe."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.unit.lab.probe.backoffice_episodes import played
from tests.unit.lab.probe.designs import FLIP_RATE, design, groups_of
from tests.unit.lab.probe.published import COORDINATES, published_model
from tests.unit.lab.probe.tiny import draw, log_likelihood, tiny_model
from tests.unit.stack import require_stack
from toolkit.errors import DamagedError, IncompleteError, UsageError, VerificationError
from toolkit.lab.probe.design import ACTIONS, ALL, DESIGNS, OUTCOME, TRANSITION
from toolkit.lab.probe.evidence import GramEvidence, Scored, gather
from toolkit.lab.probe.language_model import probe_language_model
from toolkit.lab.probe.lora import Coordinates, Scorer
from toolkit.lab.probe.recorded import Recorded

require_stack()

import torch  # noqa: E402

DESIGN = design(outcome_tasks=6, transition_tasks=3, size=4)
GROUPS = groups_of(DESIGN)
SINGLE = 1e-4
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
    return {one.noise: played(one) for one in DESIGN.sets}


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


def group_gradient(model: Any, task: Recorded, group: list[int]) -> Any:
    """Return Σ_i A_i ∇ log π_i / G of a group, from one backward pass over their weighted sum."""
    rewards = np.array(task.rewards)[group]
    advantages = (rewards - rewards.mean()) / len(group)
    model.zero_grad()
    pairs = zip(advantages.tolist(), group, strict=True)
    sum(weight * log_likelihood(model, task.transcripts[at]) for weight, at in pairs).backward()
    gradients = [tensor.grad for tensor in model.parameters() if tensor.requires_grad]
    return torch.cat([gradient.double().flatten() for gradient in gradients]).numpy()


def mixed(task: Recorded, groups: Any) -> list[int]:
    return next(list(one) for one in groups if len({task.rewards[at] for at in one}) == 2)


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


@pytest.mark.parametrize("kind", [OUTCOME, *DESIGNS[TRANSITION]])
def test_a_groups_squared_norm_is_that_of_its_own_gradient(model, recorded, evidence, kind) -> None:
    noise = OUTCOME if kind == OUTCOME else TRANSITION
    at, task = next((n, t) for n, t in enumerate(recorded[noise]) if len(set(t.rewards)) == 2)
    group = mixed(task, [range(4)] if noise == OUTCOME else GROUPS[kind][at])
    expected = (group_gradient(model, task, group) ** 2).sum()
    weights = np.zeros(len(task.rewards))
    rewards = np.array(task.rewards)[group]
    weights[group] = (rewards - rewards.mean()) / len(group)
    assert weights @ evidence[noise].gram[at] @ weights == pytest.approx(expected, rel=SINGLE)


def test_products_across_tasks_are_those_of_their_own_gradients(model, recorded, evidence) -> None:
    tasks = [(n, t) for n, t in enumerate(recorded[OUTCOME]) if len(set(t.rewards)) == 2][:2]
    one, other = ((1 - FLIP_RATE) * group_gradient(model, task, [0, 1, 2, 3]) for _, task in tasks)
    scale = np.linalg.norm(one) * np.linalg.norm(other)
    (i, _), (j, _) = tasks
    found = evidence[OUTCOME].products["MC"][0, i, 1, j]
    assert found == pytest.approx(one @ other, abs=SINGLE * scale)


def test_an_adapter_that_changes_between_two_tasks_is_refused(model, recorded, tmp_path) -> None:
    def tasks() -> Iterator[Recorded]:
        yield recorded[OUTCOME][0]
        draw(model, 2)
        yield recorded[OUTCOME][1]

    with pytest.raises(VerificationError, match="adapter changed"):
        probe(Scorer(model), {**recorded, OUTCOME: tasks()}, tmp_path)
    assert not list(tmp_path.iterdir())


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


def test_groups_that_draw_on_a_missing_schedule_are_refused_before_a_pass(recorded, tmp_path) -> None:
    scorer = Stub()
    fewer = replace(DESIGN, transition=DESIGN.transition._replace(schedules=5))
    with pytest.raises(IncompleteError, match="a schedule is missing"):
        probe(scorer, recorded, tmp_path, groups=groups_of(replace(fewer, groups=64)))
    assert not scorer.passes


def test_the_published_architecture_has_the_papers_coordinates() -> None:
    trainable = [tensor for tensor in published_model("meta").parameters() if tensor.requires_grad]
    assert sum(tensor.numel() for tensor in trainable) == COORDINATES


def test_a_model_has_no_coordinates_of_actions(recorded: Tasks, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no coordinates of actions"):
        probe(SimpleNamespace(), recorded, tmp_path, design=replace(DESIGN, scored=(ALL, ACTIONS)))
