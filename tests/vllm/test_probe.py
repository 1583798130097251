"""The probe of a run that vLLM generates: what it sampled, weighed by what the scored model makes of it."""

import json
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.vllm.conftest import command
from tests.vllm.probed import RUN, STEP
from toolkit.files import unsealed
from toolkit.registers.arrow import to_arrow
from toolkit.registers.schema import TABLES
from toolkit.registers.validation import check_table

pytestmark = pytest.mark.slow
PLACES = [("base", 0), (RUN, STEP)]
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def rows(model: str, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Return the rows of every table, of the untrained policy and of a checkpoint."""
    folder = tmp_path_factory.mktemp("probed")
    command("tests.vllm.probed", folder, model)
    found: Rows = {"probe_gram": []}
    for trajectory, _ in PLACES:
        path = folder / "probe" / trajectory
        found["probe_gram"] += pq.read_table(path.with_suffix(".parquet")).to_pylist()
        for name, part in _document(path.with_suffix(".json"))["tables"].items():
            found.setdefault(name, []).extend(part)
    return found


def _document(path: Path) -> Any:
    return json.loads(unsealed(path.read_bytes()) or "")


def test_the_rows_of_both_checkpoints_are_those_of_a_register(rows: Rows) -> None:
    for name, part in rows.items():
        check_table(TABLES[name], to_arrow(TABLES[name], part))
    assert [(row["trajectory"], row["step"]) for row in rows["probe_checkpoints"]] == PLACES


def test_what_vllm_sampled_is_about_as_likely_to_the_model_and_not_the_same(rows: Rows) -> None:
    """What rounding does to each of a rollout's tokens adds up; at another temperature it would be nats."""
    for place in PLACES:
        of_place = [row["weights"] for row in rows["probe_gram"] if (row["trajectory"], row["step"]) == place]
        weights = [weight for task in of_place for weight in task]
        assert 0.5 < median(weights) < 2
        assert all(weight == 0 or 0.1 < weight <= 3 for weight in weights)
        assert len(set(weights) - {0.0, 1.0}) > len(weights) / 3


def test_a_checkpoint_s_row_says_which_weights_it_met(rows: Rows) -> None:
    for row in rows["probe_checkpoints"]:
        clean = [
            weight
            for task in rows["probe_gram"]
            if (task["trajectory"], task["noise"]) == (row["trajectory"], "outcome")
            for weight in task["weights"]
        ]
        used = [weight for weight in clean if weight]
        assert row["masked_rollouts"] == len(clean) - len(used)
        figures = (row["weight_mean"], row["weight_min"], row["weight_max"])
        assert figures == pytest.approx((fmean(used), min(used), max(used)))
