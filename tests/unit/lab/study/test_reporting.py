"""Trackers: what a trainer logs of each step reaches them, below the run's folder."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.stack import require_tensorboard, require_trainer
from toolkit.errors import UsageError
from toolkit.lab.play import language_model_run, reporting


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what is set for trackers."""
    for name in ("TENSORBOARD_LOGGING_DIR", "WANDB_DIR", "WANDB_MODE", "TRACKIO_DIR"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)


def test_a_tracker_that_is_not_installed_is_refused_with_the_way_to_it(toolkit, monkeypatch) -> None:
    monkeypatch.setattr(reporting, "find_spec", lambda name: None if name == "wandb" else object())
    with pytest.raises(UsageError, match="not installed") as raised:
        reporting.check_trackers(["tensorboard", "wandb"])
    assert (raised.value.found, "pip install wandb" in str(raised.value.remedy)) == ("without wandb", True)
    reporting.check_trackers(["tensorboard", "trackio"])
    toolkit("train", "--recipe", "small", "--report-to", "paper").refused(2, "--report-to")


def test_each_tracker_has_the_trainer_s_own_callback_and_a_place_in_the_run_s_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_trainer()
    from transformers import integrations

    monkeypatch.setattr(reporting, "find_spec", lambda _: object())
    added: list[object] = []
    trainer = SimpleNamespace(args=SimpleNamespace(run_name=None), add_callback=added.append)
    reporting.report(trainer, (), tmp_path / "none")
    assert (added, list(tmp_path.iterdir())) == ([], [])
    for run in ("c2-paired-s0", "c2-paired-s1"):
        reporting.report(trainer, reporting.TRACKERS, tmp_path / run)
        places = {path.name: str(path) for path in (tmp_path / run / "reports").iterdir()}
        assert set(places) == set(reporting.TRACKERS)
        assert os.environ["TENSORBOARD_LOGGING_DIR"] == places["tensorboard"]
        assert os.environ["WANDB_DIR"] == places["wandb"]
        assert os.environ["TRACKIO_DIR"] == places["trackio"]
    assert added[:3] == integrations.get_reporting_integration_callbacks(list(reporting.TRACKERS))
    assert os.environ["WANDB_MODE"] == "offline"
    assert trainer.args.run_name == "c2-paired-s0"


@pytest.mark.slow
def test_tensorboard_has_every_step_s_figures_and_the_run_is_complete_without_them(tmp_path) -> None:
    require_tensorboard()
    require_trainer()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from tests.unit.lab.study import train_in_a_folder
    from tests.unit.lab.training.language_model.small_model import a_tokenizer, saved

    model = saved(tmp_path / "model", a_tokenizer())
    with train_in_a_folder.scripted():
        run = train_in_a_folder.specification(model)
        folder = tmp_path / "study"
        assert language_model_run.train_run(run, model, folder, cpu=True, report_to=("tensorboard",))
    place = folder / run.run_id / "reports" / "tensorboard"
    events = EventAccumulator(str(place))
    events.Reload()
    for name in ("train/loss", "train/grad_norm", "train/reward"):
        assert [event.step for event in events.Scalars(name)] == [1, 2, 3, 4], name
    assert (folder / run.run_id / "COMPLETE.json").is_file()
    assert "reports" not in (folder / run.run_id / "COMPLETE.json").read_text()
