"""Two steps of GRPO that vLLM generates beside the trainer: trained, killed, gone on with, evaluated."""

import json
import signal
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
import pytest

from tests.vllm.conftest import Evaluate, alike, command

pytestmark = pytest.mark.slow
FILES = ("segment-000", "segment-001", "segment-002", "episodes.parquet", "groups.parquet", "adapters.parquet")


@pytest.fixture(scope="module", params=["paired", "independent"])
def run(request: pytest.FixtureRequest, model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that was killed in its second step, and gone on with."""
    arm, folder = request.param, tmp_path_factory.mktemp(request.param)
    command("tests.vllm.run", folder, model, arm, 2, code=-signal.SIGKILL)
    (found,) = folder.glob("c2-*")
    assert not (found / "COMPLETE.json").exists()
    assert len(list(found.glob("segment-*"))) == 2
    command("tests.vllm.run", folder, model, arm)
    return found


def groups(run: Path) -> list[dict[str, Any]]:
    return pl.read_parquet(run / "groups.parquet").to_dicts()


def test_it_goes_on_from_its_checkpoint_and_says_what_generated(run: Path) -> None:
    first, second = (json.loads((run / f"attempt-{number}.json").read_bytes()) for number in (1, 2))
    assert (first["from_step"], first["ended_at"], second["from_step"]) == (0, None, 1)
    assert "vllm 0.27.1+cpu" in second["stack"]
    assert [row["step"] for row in groups(run)] == [1, 1, 2, 2]


def test_rollouts_meet_the_schedules_of_their_design(run: Path) -> None:
    for row in groups(run):
        assert len(set(row["schedule_seeds"])) == (1 if "-paired-" in run.name else 8)


def test_the_trainer_finds_what_vllm_sampled_about_as_likely(run: Path) -> None:
    """A weight is a whole rollout's: what each token's rounding does to it adds up, and above 3 it is masked."""
    weights = [weight for row in groups(run) for weight in row["importance_weights"]]
    assert 0.9 < median(weights) < 1.1
    assert all(0.2 < weight <= 3 for weight in weights)


def test_it_learns_from_groups_that_differ(run: Path) -> None:
    assert any(not row["zero_variance"] for row in groups(run))
    digests = pl.read_parquet(run / "adapters.parquet")["sha256"].to_list()
    assert len(set(digests)) == 3


def test_gone_on_with_or_not_it_leaves_the_same_bytes(run: Path, model: str, tmp_path: Path) -> None:
    """vLLM draws from the trainer's generator, which is seeded anew in every step."""
    if "-paired-" not in run.name:
        return
    command("tests.vllm.run", tmp_path, model, "paired")
    for name in FILES:
        assert (run / name).read_bytes() == (tmp_path / run.name / name).read_bytes(), name


def test_what_was_trained_is_evaluated_by_vllm_as_by_transformers(
    run: Path, model: str, evaluate: Evaluate
) -> None:
    trained = ("--model", model, "--adapter", run / "checkpoint-2", "--max-tokens", 800)
    assert alike(evaluate("--engine", "vllm", *trained), evaluate("--engine", "transformers", *trained))
