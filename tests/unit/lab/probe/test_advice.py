"""Advice on rollouts and intervals that are made here, so that the truth is known; what cannot be read."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError
from toolkit.estimators.advantages import EPSILON
from toolkit.estimators.drifts import DriftInterval
from toolkit.estimators.taskwise import TaskUncertainty
from toolkit.lab.probe import advice
from toolkit.lab.probe.advice import Advice, GroupEvidence, advise
from toolkit.lab.probing.rollout_files import read_rollouts
from toolkit.structs import as_builtins, replace

SIZE, COORDINATES = 4, 5
MEAN = np.array([1.0, -0.7, 0.5, 0.0, 0.0])
BATCH = 2


def truth(paired: np.ndarray, independent: np.ndarray) -> float:
    """Return Adam's drift ratio from variances, by its formula."""
    gains = [float((MEAN**2 / np.sqrt(MEAN**2 + v / BATCH)).sum()) for v in (paired, independent)]
    return gains[0] / gains[1]


def made(paired, independent, tasks, *, constant=0.0, seed=0) -> tuple[GroupEvidence, float]:
    """Return normal gradients of 4 groups a task and design, and the true ratio.

    Deviations are one number for all coordinates. Of the paired groups a share is constant, and the others
    speak as much louder as keeps the mean.
    """
    generator, number = np.random.default_rng(seed), tasks * 4
    gradients = [MEAN + generator.normal(0, sd, (number, COORDINATES)) for sd in (paired, independent)]
    varied = np.ones((2, number), dtype=bool)
    varied[0] = generator.random(number) >= constant
    gradients[0] = gradients[0] * (varied[0] / (1 - constant))[:, None]
    variance = (paired**2 + MEAN**2) / (1 - constant) - MEAN**2
    evidence = GroupEvidence(
        np.repeat([True, False], number),
        np.tile(np.arange(number) % tasks, 2),
        varied.ravel(),
        SIZE,
        gradients=np.concatenate(gradients),
        common_mean=True,
    )
    return evidence, truth(variance, np.full(COORDINATES, independent**2))


@pytest.mark.parametrize(
    ("settings", "verdict"),
    [
        ({"paired": 1.0, "independent": 3.0, "tasks": 200}, "pair"),
        ({"paired": 1.0, "independent": 1.0, "tasks": 200, "constant": 0.6}, "do_not_pair"),
        ({"paired": 0.5, "independent": 0.5, "tasks": 200}, "either"),
        ({"paired": 2.0, "independent": 2.2, "tasks": 12}, "undecided"),
    ],
)
def test_the_advice_is_what_the_truth_and_the_number_of_tasks_allow(settings, verdict) -> None:
    evidence, expected = made(**settings)
    advice = advise(evidence, "adam", BATCH)
    ratio = advice.figures["drift_ratio"]
    assert advice.verdict == verdict
    assert ratio.low < expected < ratio.high
    assert (advice.tasks_needed is not None) == (verdict == "undecided")
    assert advice.sentences[0].split(":")[0].lower().replace(" ", "_") in verdict or verdict == "either"
    json.dumps(as_builtins(advice), allow_nan=False)


def test_groups_drawn_again_have_the_ratio_of_the_varied_ones_alone() -> None:
    evidence, _ = made(1.0, 1.0, 250, constant=0.6)
    figures = advise(evidence, "adam", BATCH).figures
    louder = MEAN / 0.4
    gain = (MEAN * louder / np.sqrt(louder**2 + (1 / 0.4) ** 2 / BATCH)).sum()
    expected = gain / (MEAN**2 / np.sqrt(MEAN**2 + 1 / BATCH)).sum()
    assert figures["drift_ratio_resampled"].low < expected < figures["drift_ratio_resampled"].high
    assert figures["draws_paired"].value == pytest.approx(2.5, rel=0.1)


def test_what_the_evidence_does_not_hold_is_said_to_be_missing() -> None:
    evidence, _ = made(1.0, 3.0, 50)
    gram = evidence.gradients @ evidence.gradients.T
    alone = replace(evidence, gradients=None)
    products = replace(alone, gram=gram)
    nothing, some = advise(alone), advise(products)
    assert nothing.verdict == some.verdict == "not_evaluable"
    assert {"trace_ratio", "along_ratio", "drift_ratio"} <= set(nothing.not_evaluable)
    assert "second moment" in some.not_evaluable["drift_ratio"]
    assert some.figures["trace_ratio"].low < 1 / 9 < some.figures["trace_ratio"].high
    assert some.figures == {
        name: figure for name, figure in advise(evidence).figures.items() if "drift" not in name
    }
    assert advise(products, "gradient").verdict == "either"


ROWS: list[dict[str, object]] = [
    {"design": design, "task": f"t{t}", "group": f"{t}-{group}", "reward": (t * 7 + group * 3 + slot) % 2}
    for design in ("paired", "independent")
    for t in range(6)
    for group in range(2)
    for slot in range(SIZE)
]
SCORES = np.random.default_rng(3).normal(0, 1, (len(ROWS), COORDINATES))


def written(folder: Path, rows: list[dict[str, object]] = ROWS, **arrays: np.ndarray) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "rollouts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder


@pytest.mark.parametrize("scaled", [True, False])
def test_scores_give_gradients_and_their_products(tmp_path, scaled) -> None:
    found = read_rollouts(written(tmp_path / "a", scores=SCORES), scaled=scaled)
    rewards = np.array([row["reward"] for row in ROWS], dtype=float).reshape(-1, SIZE)
    beyond = rewards - rewards.mean(axis=1, keepdims=True)
    plain = np.einsum("gi,gip->gp", beyond, SCORES.reshape(-1, SIZE, COORDINATES)) / SIZE
    divided = plain / (rewards.std(axis=1, ddof=1) + EPSILON)[:, None] if scaled else plain
    np.testing.assert_allclose(found.gradients, divided)
    assert found.common_mean is not scaled
    if scaled:
        np.testing.assert_allclose(found.direction, plain)
    for name, array in (("b", SCORES @ SCORES.T), ("c", divided @ divided.T)):
        products = read_rollouts(written(tmp_path / name, gram=array), scaled=scaled)
        np.testing.assert_allclose(products.gram, divided @ divided.T, atol=1e-12)
    given = read_rollouts(written(tmp_path / "d", gradients=divided), scaled=scaled)
    np.testing.assert_array_equal(given.gradients, divided)


def test_formats_are_the_same_rollouts(tmp_path) -> None:
    expected = read_rollouts(written(tmp_path / "a", scores=SCORES), scaled=True)
    for name, write in (("csv", pl.DataFrame.write_csv), ("parquet", pl.DataFrame.write_parquet)):
        folder = tmp_path / name
        folder.mkdir()
        write(pl.DataFrame(ROWS), folder / f"rollouts.{name}")
        np.savez(folder / "scores.npz", SCORES)
        found = read_rollouts(folder / f"rollouts.{name}", scaled=True)
        np.testing.assert_array_equal(found.gradients, expected.gradients)
        np.testing.assert_array_equal(found.tasks, expected.tasks)


def test_scores_in_safetensors(tmp_path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    folder = written(tmp_path / "a")
    safetensors.save_file({"scores": SCORES}, folder / "scores.safetensors")
    assert read_rollouts(folder, scaled=True).gradients.shape == (24, COORDINATES)
    (folder / "scores.safetensors").write_bytes(b"no tensors")
    with pytest.raises(DamagedError, match="not a readable array"):
        read_rollouts(folder, scaled=True)


def changed(at: int, **values: object) -> list[dict[str, object]]:
    return [row | values if number == at else row for number, row in enumerate(ROWS)]


HOLED = SCORES.copy()
HOLED[3, 2] = np.nan


@pytest.mark.parametrize(
    ("rows", "arrays", "error", "words"),
    [
        (ROWS[:-1], {}, DamagedError, "number of rollouts"),
        (ROWS[:48], {}, IncompleteError, "independent design"),
        (ROWS[:-16], {}, IncompleteError, "have no independent group"),
        ([row for row in ROWS if row["task"] == "t0"], {}, IncompleteError, "one task"),
        ([{"design": "paired"}], {}, IncompleteError, "no column task, group, reward"),
        (changed(5, reward=float("nan")), {}, DamagedError, "reward is not finite"),
        (changed(5, reward="high"), {}, DamagedError, "reward is no number"),
        (changed(5, design="both"), {}, DamagedError, "neither paired nor independent"),
        (changed(5, task="t3"), {}, DamagedError, "two tasks"),
        (changed(5, task=None), {}, DamagedError, "no task"),
        (ROWS, {"scores": HOLED}, DamagedError, "not finite"),
        (ROWS, {"scores": SCORES[:-1]}, DamagedError, "does not fit"),
        (ROWS, {"gradients": SCORES}, DamagedError, "does not fit"),
        (ROWS, {"gram": SCORES[:, :4]}, DamagedError, "does not fit"),
        (ROWS, {"gram": np.triu(SCORES @ SCORES.T)}, DamagedError, "not symmetric"),
        (ROWS, {"scores": SCORES.astype(str)}, DamagedError, "no table of numbers"),
        (ROWS, {"scores": SCORES[0]}, DamagedError, "no table of numbers"),
        (ROWS, {"scores": np.array([[None]])}, DamagedError, "not a readable array"),
        (ROWS, {"scores": SCORES, "gram": SCORES @ SCORES.T}, UsageError, "several arrays"),
    ],
)
def test_what_cannot_be_read_says_what_and_where(tmp_path, rows, arrays, error, words) -> None:
    folder = written(tmp_path / "a", rows, **arrays)
    with pytest.raises(error, match=words) as raised:
        read_rollouts(folder, scaled=True)
    said: ToolkitError = raised.value
    assert said.where
    assert said.expected or said.found


def test_a_folder_has_one_table(tmp_path) -> None:
    with pytest.raises(IncompleteError, match="no table"):
        read_rollouts(tmp_path, scaled=True)
    folder = written(tmp_path / "a")
    (folder / "rollouts.csv").write_text("design,task,group,reward\n")
    with pytest.raises(UsageError, match="several tables"):
        read_rollouts(folder, scaled=True)


TASKS, COLUMNS = 20, 4
TOLD, NOT_TOLD = TaskUncertainty(1.0, 0.5, 1.5, 0.2, 1.0), TaskUncertainty(1.0, -0.5, 1.5, 0.5, 1.0)
RNG = np.random.default_rng(9)
PAIRED, LABELS = np.repeat([True, False], 2 * TASKS), np.tile(np.arange(TASKS), 4)
VARIED = np.arange(4 * TASKS) % 5 > np.where(PAIRED, 1, 0)
GRADIENTS = RNG.normal(0.5, 1, (4 * TASKS, COLUMNS)) * VARIED[:, None]
GROUPS = GroupEvidence(PAIRED, LABELS, VARIED, 8, gradients=GRADIENTS)

Judge = Callable[..., Advice]


def ratio(best: float, low: float, high: float) -> TaskUncertainty:
    """Return a ratio whose plain value is another."""
    return TaskUncertainty(best + 0.04, low, high, (high - low) / 4, best)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Advise where the drifts' ratio is what is given, of the groups in a step or whatever they are."""

    def judged(of: Any, independent: TaskUncertainty = TOLD, batch: int = BATCH) -> Advice:
        def interval(_paired: object, _independent: object, groups: float, *_: object, **__: object) -> Any:
            return DriftInterval(TOLD, independent, of(groups) if callable(of) else of)

        monkeypatch.setattr(advice, "drift_interval", interval)
        return advise(GROUPS, "adam", batch)

    return judged


@pytest.mark.parametrize(
    ("interval", "verdict", "tasks"),
    [
        ((0.97, 0.96, 0.98), "either", None),
        ((0.97, 0.94, 0.99), "do_not_pair", None),
        ((0.80, 0.70, 0.90), "do_not_pair", None),
        ((1.03, 1.01, 1.06), "pair", None),
        # Half the interval reaches what it has to leave, at twice or three times the root of the tasks.
        ((0.90, 0.70, 1.10), "undecided", 4 * TASKS),
        ((1.00, 0.85, 1.15), "undecided", 9 * TASKS),
        ((1.20, 0.80, 1.60), "undecided", 4 * TASKS),
        # The interval need not be the estimate's own: what is asked for is never less than there is.
        ((0.90, 0.95, 1.10), "undecided", TASKS),
    ],
)
def test_the_verdict_is_the_intervals(judge, interval, verdict, tasks) -> None:
    found = judge(ratio(*interval))
    assert (found.verdict, found.tasks_needed) == (verdict, pytest.approx(tasks, abs=1))
    assert f"{interval[0]:.3f} [{interval[1]:.3f}, {interval[2]:.3f}]" in found.sentences[0]


def test_a_drift_that_is_not_told_from_zero_decides_nothing(judge: Judge) -> None:
    found = judge(ratio(0.5, 0.4, 0.6), NOT_TOLD)
    assert (found.verdict, found.tasks_needed) == ("undecided", None)
    assert "not told from zero" in found.sentences[1]


def test_the_batch_is_the_first_whose_ratio_is_above_the_margin(judge: Judge) -> None:
    found = judge(lambda groups: ratio(1 - 0.5 / groups, 0.3, 0.99 - 0.5 / groups))
    assert found.batch_needed == 11  # 1 - 0.5/10 is the margin itself
    assert "pairing slows learning by about 25 %" in found.sentences[0]
    assert "about 11 groups a step" in found.sentences[1]
    assert judge(lambda groups: ratio(1 - 0.5 / groups, 0.3, 1.2), batch=11).batch_needed is None
    assert judge(ratio(0.5, 0.4, 0.6)).batch_needed is None


@pytest.mark.parametrize(
    ("interval", "are_said"),
    [((0.80, 0.70, 0.90), True), ((1.20, 1.10, 1.30), False), ((1, 0.99, 1.01), False)],
)
def test_what_to_change_is_said_where_pairing_may_slow_learning(judge, interval, are_said) -> None:
    found = judge(ratio(*interval))
    assert "drift_ratio_resampled" in found.figures
    assert any("drawn again" in sentence for sentence in found.sentences) == are_said


def test_shares_of_constant_groups_are_each_designs_own() -> None:
    figures = advise(GROUPS).figures
    for design, of in (("paired", PAIRED), ("independent", ~PAIRED)):
        share = 1 - VARIED[of].mean()
        assert figures[f"constant_{design}"].value == pytest.approx(share)
        assert figures[f"draws_{design}"].value == pytest.approx(1 / (1 - share))
    assert figures["constant_paired"].value > figures["constant_independent"].value > 0


def progress(gradients: np.ndarray, tasks: np.ndarray, along: np.ndarray, of: np.ndarray) -> float:
    """Return Adam's progress along other gradients, pair by pair of different tasks."""

    def product(one: np.ndarray, mine: np.ndarray, other: np.ndarray, others: np.ndarray) -> np.ndarray:
        pairs = [
            (i, j) for i, j in itertools.product(range(len(one)), range(len(other))) if mine[i] != others[j]
        ]
        return np.mean([one[i] * other[j] for i, j in pairs], axis=0)

    squared = product(gradients, tasks, gradients, tasks)
    noise = ((gradients**2).mean(axis=0) - squared) / BATCH
    root = np.sqrt(np.maximum(squared, 0) + noise)
    return float((product(along, of, gradients, tasks) / root).sum())


def test_progress_is_along_the_direction_that_is_given() -> None:
    direction = RNG.normal(0.7, 1, GRADIENTS.shape)
    found = advise(replace(GROUPS, direction=direction), "adam", BATCH).figures["drift_ratio"]
    gains = [progress(GRADIENTS[of], LABELS[of], direction, LABELS) for of in (PAIRED, ~PAIRED)]
    assert found.value == pytest.approx(gains[0] / gains[1], rel=1e-9)


ONE_TASK = VARIED & (~PAIRED | (LABELS[VARIED & PAIRED][0] == LABELS))
FEW = LABELS < 3


@pytest.mark.parametrize(
    ("evidence", "figure", "reason"),
    [
        (replace(GROUPS, gradients=0 * GRADIENTS), "trace_ratio", "every gradient is zero"),
        (replace(GROUPS, gradients=RNG.normal(size=GRADIENTS.shape)), "along_ratio", "not told from zero"),
        (
            replace(GROUPS, varied=ONE_TASK, gradients=GRADIENTS * ONE_TASK[:, None]),
            *("drift_ratio_resampled", "fewer than two tasks"),
        ),
        (
            GroupEvidence(PAIRED[FEW], LABELS[FEW], VARIED[FEW], 8, gradients=GRADIENTS[FEW]),
            *("trace_ratio", "tasks at least"),
        ),
    ],
)
def test_a_figure_that_groups_do_not_have_is_missing_with_its_reason(evidence, figure, reason) -> None:
    found = advise(evidence)
    assert figure not in found.figures
    assert reason in found.not_evaluable[figure]
    assert "drift_ratio" in found.figures


def test_inner_products_of_scaled_groups_say_nothing_of_plain_ascent() -> None:
    products = replace(GROUPS, gram=GRADIENTS @ GRADIENTS.T, gradients=None)
    assert advise(products, "gradient").verdict == "not_evaluable"


@pytest.mark.parametrize(("spread", "is_said"), [((3.0, 0.5), True), ((0.5, 3.0), False)])
def test_inner_products_say_where_pairing_raises_the_variance(spread, is_said) -> None:
    evidence, _ = made(*spread, 60)
    gram = evidence.gradients @ evidence.gradients.T
    found = advise(replace(evidence, gram=gram, gradients=None, common_mean=False))
    assert any("raises the variance along" in sentence for sentence in found.sentences) == is_said
