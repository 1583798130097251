"""Results for model repositories are read by the Hub's own client, and are the registers'."""

from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub import _eval_results as eval_results

from tests.conftest import CHECKOUT
from toolkit import api
from toolkit.errors import UsageError
from toolkit.registers.study import Study, open_study
from toolkit.study.exports.formats import Wanted
from toolkit.study.exports.hub_results import last_results

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DATASET = f"some-group/their-study@{COMMIT}"


@pytest.mark.parametrize(
    ("name", "phase"), [("published", "final"), ("tiny-lm", "final"), ("small-lm", "periodic")]
)
def test_the_hub_reads_the_last_evaluation_of_every_run(name: str, phase: str) -> None:
    study = open_study(CHECKOUT / "registers" / name)
    files = dict(api.export(study, Wanted("hf-results", dataset=DATASET)))
    runs = {row["run_id"]: row["steps"] for row in study.rows("runs")}
    assert {Path(path).parts[0] for path in files} == set(runs)
    for run, steps in runs.items():
        expected = {
            (row["pool"], row["regime"]): row["successes"] / row["episodes"]
            for row in study.rows("evaluations")
            if (row["run_id"], row["phase"], row["step"]) == (run, phase, steps)
        }
        assert expected
        data = ModelCard(files[f"{run}/README.md"].decode()).data
        assert data.model_name == run
        card = {
            (r.dataset_name.split()[0], r.dataset_args["regime"]): r.metric_value for r in data.eval_results
        }
        assert card == expected
        assert {(r.dataset_type, r.dataset_revision) for r in data.eval_results} == {
            ("some-group/their-study", COMMIT)
        }
        written = yaml.safe_load(files[f"{run}/.eval_results/{name}.yaml"])
        entries = eval_results.parse_eval_result_entries(written)
        assert {e.task_id: e.value for e in entries} == {
            f"{p}-{r}-success_rate": value for (p, r), value in expected.items()
        }
        assert {(e.dataset_id, e.dataset_revision) for e in entries} == {("some-group/their-study", COMMIT)}
        assert eval_results.eval_result_entries_to_yaml(entries) == written


def test_a_result_is_dated_where_the_registers_say_when(published: Study) -> None:
    tiny = open_study(CHECKOUT / "registers" / "tiny-lm")
    (launch,) = (row for row in tiny.rows("launches") if row["run_id"] == "c2-paired-s0")
    files = dict(api.export(tiny, Wanted("hf-results", runs="c2-paired-s0", dataset=DATASET)))
    assert launch["ended_at"] is not None
    dates = {entry["date"] for entry in yaml.safe_load(files["c2-paired-s0/.eval_results/tiny-lm.yaml"])}
    assert dates == {f"{launch['ended_at']:%Y-%m-%dT%H:%M:%SZ}"}
    undated = dict(api.export(published, Wanted("hf-results", runs="gate1-*", dataset=DATASET)))
    (entries,) = (yaml.safe_load(raw) for name, raw in undated.items() if "eval" in name)
    assert all("date" not in entry for entry in entries)


def test_final_evaluations_come_before_periodic_ones_of_the_same_step() -> None:
    rows = [
        {"step": step, "phase": phase} for step, phase in [(0, "periodic"), (8, "periodic"), (8, "final")]
    ]
    assert last_results(rows) == rows[2:]
    assert last_results(rows[:2]) == rows[1:2]
    assert last_results([]) == []


def test_nothing_is_said_of_a_dataset_that_nobody_named(published: Study) -> None:
    with pytest.raises(UsageError, match="name the dataset"):
        dict(api.export(published, Wanted("hf-results")))
    with pytest.raises(UsageError, match="a tag or a branch"):
        dict(api.export(published, Wanted("hf-results", dataset="some-group/their-study@v1")))
    wanted = Wanted("hf-results", runs="gate1-*", dataset="some-group/their-study")
    unpinned = dict(api.export(published, wanted))
    (card,) = (ModelCard(raw.decode()) for name, raw in unpinned.items() if name.endswith("README.md"))
    assert {result.dataset_revision for result in card.data.eval_results} == {None}
