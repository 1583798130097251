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
SEGMENTS = ("segment-000", "segment-001", "segment-002")
FILES = (*SEGMENTS, "episodes.parquet", "groups.parquet", "adapters.parquet")


@pytest.fixture(scope="module")
def whole(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run in the paired design."""
    folder = tmp_path_factory.mktemp("whole")
    command("tests.vllm.run", folder, model, "paired")
    return folder / "c2-paired-s3"


@pytest.fixture(scope="module")
def independent(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run in the independent design."""
    folder = tmp_path_factory.mktemp("independent")
    command("tests.vllm.run", folder, model, "independent")
    return folder / "c2-independent-s3"


@pytest.fixture(params=["whole", "independent"])
def run(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def groups(run: Path) -> list[dict[str, Any]]:
    return pl.read_parquet(run / "groups.parquet").to_dicts()


def test_two_steps_are_recorded_and_what_generated_them(run: Path) -> None:
    attempt = json.loads((run / "attempt-1.json").read_bytes())
    assert "vllm 0.27.1+cpu" in attempt["stack"]
    assert [row["step"] for row in groups(run)] == [1, 1, 2, 2]


def test_rollouts_meet_the_schedules_of_their_design(run: Path) -> None:
    for row in groups(run):
        assert len(set(row["schedule_seeds"])) == (1 if "-paired-" in run.name else 8)


def test_the_trainer_finds_what_vllm_sampled_about_as_likely(run: Path) -> None:
    """A weight is a whole rollout's: what rounding does to each token adds up; above 3 it is masked."""
    weights = [weight for row in groups(run) for weight in row["importance_weights"]]
    assert 0.9 < median(weights) < 1.1
    assert all(0.2 < weight <= 3 for weight in weights)


def test_it_learns_from_groups_that_differ(run: Path) -> None:
    assert any(not row["zero_variance"] for row in groups(run))
    digests = pl.read_parquet(run / "adapters.parquet")["sha256"].to_list()
    assert len(set(digests)) == 3


def test_killed_and_gone_on_with_it_leaves_the_same_bytes_which_are_evaluated(
    whole: Path, model: str, evaluate: Evaluate, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What vLLM draws comes from the trainer's generator, which is seeded anew in every step."""
    folder = tmp_path_factory.mktemp("killed")
    command("tests.vllm.run", folder, model, "paired", 2, code=-signal.SIGKILL)
    killed = folder / whole.name
    assert sorted(path.name for path in killed.glob("segment-*")) == list(SEGMENTS[:2])
    command("tests.vllm.run", folder, model, "paired")
    for name in FILES:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    assert json.loads((killed / "attempt-2.json").read_bytes())["from_step"] == 1
    trained = ("--model", model, "--adapter", killed / "checkpoint-2", "--max-tokens", 800)
    assert alike(evaluate("--engine", "vllm", *trained), evaluate("--engine", "transformers", *trained))
