"""Advice on rollouts that are made here, so that the truth is known; and what cannot be read."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError
from toolkit.estimators.advantages import EPSILON
from toolkit.lab.probe.advice import GroupEvidence, advise
from toolkit.lab.probing.rollout_files import read_rollouts

SIZE, COORDINATES = 4, 5
MEAN = np.array([1.0, -0.7, 0.5, 0.0, 0.0])
BATCH = 2


def truth(paired: np.ndarray, independent: np.ndarray) -> float:
    """Return Adam's drift ratio from variances, by its formula."""
    gains = [float((MEAN**2 / np.sqrt(MEAN**2 + v / BATCH)).sum()) for v in (paired, independent)]
    return gains[0] / gains[1]


def made(
    paired: float, independent: float, tasks: int, *, constant: float = 0.0, seed: int = 0
) -> tuple[GroupEvidence, float]:
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
    json.dumps(advice.document(), allow_nan=False)


def test_as_many_tasks_as_it_asks_for_settle_it_more_often_than_not() -> None:
    few = advise(made(2.0, 2.5, 12)[0], "adam", BATCH)
    assert few.verdict == "undecided"
    settled = [
        advise(made(2.0, 2.5, 2 * few.tasks_needed, seed=seed)[0], "adam", BATCH).verdict for seed in range(8)
    ]
    assert 12 < few.tasks_needed < 200
    assert settled.count("pair") > 4


def test_the_batch_that_is_named_brings_the_true_ratio_over_the_margin() -> None:
    evidence, expected = made(1.0, 1.0, 250, constant=0.6)
    advice = advise(evidence, "adam", BATCH)
    assert expected < 0.95
    assert advice.batch_needed > BATCH
    variance = (1 + MEAN**2) / 0.4 - MEAN**2

    def at(batch: float) -> float:
        gains = [(MEAN**2 / np.sqrt(MEAN**2 + v / batch)).sum() for v in (variance, np.ones(COORDINATES))]
        return float(gains[0] / gains[1])

    assert at(advice.batch_needed * 0.6) < 0.95 < at(advice.batch_needed * 1.6)
    assert any(f"{advice.batch_needed} groups" in sentence for sentence in advice.sentences)


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
    alone = GroupEvidence(evidence.paired, evidence.tasks, evidence.varied, SIZE)
    products = GroupEvidence(
        evidence.paired, evidence.tasks, evidence.varied, SIZE, gram=gram, common_mean=True
    )
    nothing, some = advise(alone), advise(products)
    assert nothing.verdict == some.verdict == "not_evaluable"
    assert {"trace_ratio", "along_ratio", "drift_ratio"} <= set(nothing.not_evaluable)
    assert "second moment" in some.not_evaluable["drift_ratio"]
    assert some.figures["trace_ratio"].low < 1 / 9 < some.figures["trace_ratio"].high
    assert some.figures == {
        name: figure for name, figure in advise(evidence).figures.items() if "drift" not in name
    }
    assert advise(products, "gradient").verdict == "either"


ROWS = [
    {
        "design": design,
        "task": f"t{task}",
        "group": f"{task}-{group}",
        "reward": (task * 7 + group * 3 + slot) % 2,
    }
    for design in ("paired", "independent")
    for task in range(6)
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
