"""`toolkit probe drift` and `toolkit probe advise`: what they say, and what they refuse."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from tests.unit.lab.probe.test_advice import ROWS, SCORES, written
from toolkit.errors import UsageError
from toolkit.lab.commands.probe import probe

CHECKPOINT = "--study embedded --run c4-paired-s0 --step 20"
FEW = ("--groups", "48", "--group-size", "2", "--surface-tokens", "0", "--processes", "1")


def run(*words: str) -> str:
    done = CliRunner().invoke(probe, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_drift_prints_a_ratio_a_batch_and_optimizer() -> None:
    words = ("drift", *FEW, "--batch", "1,2", "--optimizer", "adam", "--optimizer", "gradient")
    document = json.loads(run(*words, "--json"))
    assert document["policy"] is None
    cells = [(one["optimizer"], one["prompts_per_step"]) for one in document["predictions"]]
    assert cells == [("adam", 1), ("adam", 2), ("gradient", 1), ("gradient", 2)]
    told = run(*words)
    for one in document["predictions"]:
        assert f"{one['ratios']['drift']['value']:.3f}" in told
    assert "48 groups a design" in told


def test_drift_takes_its_settings_from_the_run_of_a_checkpoint() -> None:
    words = f"drift {CHECKPOINT} --groups 60 --batch 2 --json --processes 1"
    document = json.loads(run(*words.split()))
    assert document["policy"] == {"study": "embedded", "run": "c4-paired-s0", "step": 20}
    assert document["predictions"][0]["regime"] == "flips_q010"
    assert document["predictions"][0]["surface_tokens"] == 16


def test_advice_is_printed_with_its_figures(tmp_path) -> None:
    folder = str(written(tmp_path / "a", scores=SCORES))
    document = json.loads(run("advise", folder, "--json"))
    told = run("advise", folder)
    for sentence in document["sentences"]:
        assert sentence in " ".join(told.split())
    for figure in ("trace_ratio", "drift_ratio"):
        of = document["figures"][figure]
        assert f"{of['value'] if of['corrected'] is None else of['corrected']:.3f}" in told


def test_advice_says_what_it_could_not_have(tmp_path) -> None:
    folder = str(written(tmp_path / "a", gram=SCORES @ SCORES.T))
    assert "not evaluable: drift" in run("advise", folder)
    assert "cannot be said" in run("advise", str(written(tmp_path / "b", ROWS)))


def test_advice_on_a_checkpoint_plays_its_own_rollouts() -> None:
    document = json.loads(run(*f"advise {CHECKPOINT} --tasks 24 --json".split()))
    assert document["tasks"] == 24
    assert document["groups"] == {"paired": 24, "independent": 24}


@pytest.mark.parametrize(
    "line",
    [
        "drift --study embedded --run c4-paired-s0",
        f"drift {CHECKPOINT[:-1]}1",
        "drift --study embedded --run nobody --step 20",
        "drift --study tiny-lm --run f-paired-s0 --step 20",
        "drift --regime rain",
        "advise",
        "advise here --study embedded",
        "advise here --step 20",
    ],
)
def test_wrong_usage_says_what_is_expected(line) -> None:
    with pytest.raises(UsageError) as raised:
        CliRunner().invoke(probe, line.split(), catch_exceptions=False)
    assert raised.value.expected or raised.value.remedy


@pytest.mark.parametrize("batch", ["0", "1,two", "", "5000"])
def test_a_batch_is_a_list_of_whole_numbers(batch) -> None:
    done = CliRunner().invoke(probe, ("drift", "--batch", batch))
    assert done.exit_code == 2
    assert np.all([word in done.stderr for word in ("--batch", "Invalid")])
