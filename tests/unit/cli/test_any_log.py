"""The output of every program that is read becomes a registered, decided study with a site."""

import pytest

from tests.unit.cli.any_log import MOST_COMMANDS, MOST_SECONDS, journey
from toolkit.places import HOME_VARIABLE

SOURCES = {
    "lm-evaluation-harness": ("lm_eval/models", "--arm", "model"),
    "Every Eval Ever": ("every_eval_ever/lm_eval",),
    "TRL": ("trl",),
    "toolkit.noise.trainers": ("pairing",),
    "verl": ("verl", "--success", "acc"),
    "datasets, saved": ("hub_dataset/saved",),
    "datasets, a repository": ("hub_dataset/repository",),
}


@pytest.mark.slow
@pytest.mark.parametrize("program", SOURCES)
def test_a_log_becomes_a_decided_study_with_a_site(program, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    done = journey(tmp_path, *SOURCES[program])
    assert done.commands <= MOST_COMMANDS
    assert done.seconds < MOST_SECONDS
    assert set(done.verdicts) == {"H1"}
    assert done.verdicts["H1"] in {"pass", "miss"}
    assert (done.site / "mine" / "H1.html").is_file()
