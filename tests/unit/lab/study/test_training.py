"""What surrounds a training: who sends it and on which GPU, trackers, how far it is, a trial."""

import os
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import snapshot
from tests.unit.lab.study.fake_play import specification
from tests.unit.lab.worlds.published.made_words import open_small
from tests.unit.stack import require_tensorboard, require_trainer
from toolkit.errors import IncompleteError, UsageError
from toolkit.lab.executors import executor as executor_module
from toolkit.lab.executors.executor import HERE, Executor
from toolkit.lab.play import language_model_run, training_jobs
from toolkit.lab.play.language_model_run import TRACKERS, Pace, stopping
from toolkit.lab.play.training_jobs import seconds_per_step, shortened
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.training import devices
from toolkit.lab.training.recipe import load_recipe, recipe_of, specify_language_model
from toolkit.lab.training.rows import groups_at
from toolkit.lab.worlds.published import words
from toolkit.specification import LanguageModelSpecification, Specification
from toolkit.structs import replace


@pytest.fixture
def run() -> LanguageModelSpecification:
    require_trainer()
    from tests.unit.lab.training.language_model.small_model import specified

    return specified("a-folder")


@pytest.mark.parametrize(("gpus", "expected"), [(("0", "1"), ("anew", False)), ((), (None, True))])
def test_each_run_is_trained_on_a_gpu_where_there_is_one(run, monkeypatch, tmp_path, gpus, expected) -> None:
    sent: list[tuple[str | None, bool]] = []

    def each_step(self: Executor, work: deque[int], next_job: Any, _: object) -> Iterator[tuple[int, bool]]:
        for number in work:
            sent.append((self.gpu, next_job(number).cpu))
            yield number, True

    monkeypatch.setattr(Executor, "each_step", each_step)
    monkeypatch.setattr(executor_module, "visible_gpus", lambda: gpus)
    monkeypatch.setattr(training_jobs, "check_model", lambda *_: None)
    monkeypatch.setattr(training_jobs.loading, "check_importable", lambda _: None)
    monkeypatch.setattr(training_jobs, "installed", recipe_of(run).packages.get)
    training_jobs.train_models(Workplace(tmp_path), [run], HERE)
    assert sent == [expected]


def test_a_study_s_runs_are_not_sent_by_several_processes(run, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="one command sends the runs") as error:
        training_jobs.train_models(Workplace(tmp_path), [run], HERE)
    assert "-m toolkit train" in str(error.value.remedy)


def test_a_run_in_a_process_that_sees_several_gpus_begins_nothing(run, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(devices, "visible_gpus", lambda: ("0", "1"))
    with pytest.raises(UsageError, match="c2-paired-s3 would be trained in a process that sees several"):
        language_model_run.train_run(run, "a-folder", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def trackers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what is set for trackers."""
    for name in ("TENSORBOARD_LOGGING_DIR", "WANDB_DIR", "WANDB_MODE", "TRACKIO_DIR"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)


def test_a_tracker_that_is_not_installed_is_refused_with_the_way_to_it(toolkit, monkeypatch) -> None:
    monkeypatch.setattr(language_model_run, "find_spec", lambda name: None if name == "wandb" else object())
    with pytest.raises(UsageError, match="not installed") as raised:
        language_model_run.check_trackers(["tensorboard", "wandb"])
    assert (raised.value.found, "pip install wandb" in str(raised.value.remedy)) == ("without wandb", True)
    language_model_run.check_trackers(["tensorboard", "trackio"])
    toolkit("train", "--recipe", "small", "--report-to", "paper").refused(2, "--report-to")


@pytest.mark.usefixtures("trackers")
def test_each_tracker_has_the_trainer_s_own_callback_and_a_place_in_the_run_s_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_trainer()
    from transformers import integrations

    monkeypatch.setattr(language_model_run, "find_spec", lambda _: object())
    added: list[object] = []
    trainer = SimpleNamespace(args=SimpleNamespace(run_name=None), add_callback=added.append)
    language_model_run.report(trainer, (), tmp_path / "none")
    assert (added, list(tmp_path.iterdir())) == ([], [])
    for name in ("c2-paired-s0", "c2-paired-s1"):
        language_model_run.report(trainer, TRACKERS, tmp_path / name)
        places = {path.name: str(path) for path in (tmp_path / name / "reports").iterdir()}
        assert set(places) == set(TRACKERS)
        variables = ("TENSORBOARD_LOGGING_DIR", "WANDB_DIR", "TRACKIO_DIR")
        assert [os.environ[each] for each in variables] == [places[each] for each in TRACKERS]
    assert added[:3] == integrations.get_reporting_integration_callbacks(list(TRACKERS))
    assert os.environ["WANDB_MODE"] == "offline"
    assert trainer.args.run_name == "c2-paired-s0"


@pytest.mark.slow
@pytest.mark.usefixtures("trackers")
def test_tensorboard_has_every_step_s_figures_and_the_run_is_complete_without_them(model, tmp_path) -> None:
    require_tensorboard()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from tests.unit.lab.study import train_in_a_folder

    run = train_in_a_folder.specification(model)
    with train_in_a_folder.scripted():
        assert language_model_run.train_run(run, model, tmp_path, cpu=True, report_to=("tensorboard",))
    events = EventAccumulator(str(tmp_path / run.run_id / "reports" / "tensorboard"))
    events.Reload()
    for name in ("train/loss", "train/grad_norm", "train/reward"):
        assert [event.step for event in events.Scalars(name)] == [1, 2, 3, 4], name
    assert "reports" not in (tmp_path / run.run_id / "COMPLETE.json").read_text()


def work() -> None:
    with stopping(lambda: "x-s0, after step 3 of 8", lambda: "the same command goes on"):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        except Exception:  # noqa: BLE001 - as libraries do
            pytest.fail("caught")


def test_work_that_is_told_to_stop_says_where_it_was_and_what_goes_on() -> None:
    """Nothing that catches errors keeps it from stopping, and whoever answered before does so again."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(IncompleteError, match="told to stop") as raised:
        work()
    assert (raised.value.found, raised.value.where) == ("SIGTERM", "x-s0, after step 3 of 8")
    assert raised.value.remedy == "the same command goes on"
    assert signal.getsignal(signal.SIGTERM) is before


def test_outside_the_main_thread_nothing_is_answered() -> None:
    done = []

    def elsewhere() -> None:
        with stopping(str, str):
            done.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert done == [signal.getsignal(signal.SIGTERM)]


def test_a_word_is_said_now_and_then(monkeypatch) -> None:
    said: list[str] = []
    clock = iter((9.9, 10.0, 19.9))
    monkeypatch.setattr(language_model_run, "monotonic", lambda: next(clock))
    pace = Pace(said.append, 10.0, 0.0)
    for text in ("too early", "now", "too early again"):
        pace(text)
    assert said == ["now"]


SETTINGS = ("step.prompts=2", "step.micro_batch=8", "sampling.max_completion_tokens=60", "lora.rank=2")
RECIPE = load_recipe("small", changes=[*SETTINGS, "optimizer.warmup_steps=8"])
RUN = specification(diagnosed=(0, 4), prompts_per_step=24, steps=100, checkpoint_every=20)


def met(run: Specification) -> set[int]:
    return {seed for step in (1, 2, 3) for group in groups_at(run, step) for seed in group.schedule_seeds}


def test_a_trial_has_the_run_s_place_the_recipe_s_sizes_and_seeds_of_its_own() -> None:
    for run in (RUN, specify_language_model(RUN, RECIPE, "f" * 40)):
        tried = shortened(run, RECIPE, 3)
        assert (tried.arm, tried.seed, tried.regime) == (run.arm, run.seed, run.regime)
        assert (tried.steps, tried.prompts_per_step, tried.group_size) == (3, 2, 8)
        assert (tried.ends, tried.diagnosed) == ((0, 3), ())
        assert recipe_of(tried).optimizer.warmup_steps == 3, "no longer than the trial"
        assert not met(tried) & met(replace(run, root="small " + "a" * 64))


def test_the_first_of_several_steps_does_not_count_in_their_duration() -> None:
    assert seconds_per_step([5.0]) == 5.0
    assert seconds_per_step([5.0, 1.0, 2.0]) == 1.5


PLAN = ("train", "--recipe", "qwen3.5-2b", "--world", "published")


def test_the_published_world_is_planned_without_its_words_and_not_trained_in(toolkit, monkeypatch) -> None:
    monkeypatch.setattr(words, "EVIDENCE", "nowhere")
    planned = toolkit(*PLAN, "--dry-run", "--json")
    assert "toolkit adopt published ../paired-rollouts" in planned.err
    document = planned.json()
    assert (document["study"], document["total"]["runs"], document["time"]["verdict"]) == (
        *("qwen3.5-2b", 14),
        "estimated",
    )
    sources = {each["setting"]: each["source"] for each in document["recipe"]["settings"]}
    for name in ("step.scored_at_once", "engine.prefix_caching", "engine.batched_tokens"):
        assert "authors'" in sources[name]
    asked = (*PLAN, "--cpu", "--set", "engine.kind=transformers", "--try", 1)
    assert "toolkit adopt published ../paired-rollouts" in toolkit(*asked).refused(3, "words").err


def test_a_study_of_another_world_is_not_trained_in_the_published_one(toolkit, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        open_small(patch)
        asked = ("train", "--study", "small-lm", "--world", "published", "--cpu")
        toolkit(*asked).refused(2, "is registered in another world")


def test_a_trial_in_the_published_world_has_schedules_of_its_own() -> None:
    run = replace(RUN, world="published")
    assert not met(shortened(run, RECIPE, 3)) & met(run)


@pytest.mark.slow
def test_two_steps_are_tried_and_nothing_is_kept(toolkit, tmp_path, monkeypatch) -> None:
    require_trainer()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = snapshot(tmp_path)
    asked = [part for setting in SETTINGS for part in ("--set", setting)]
    result = toolkit("train", "--recipe", "small", "--cpu", "--try", 2, *asked, "--json")
    assert result.code == 0, result.err
    document = result.json()
    assert document["run_id"] == "c2-paired-s0"
    assert [step["step"] for step in document["steps"]] == [1, 2]
    for step in document["steps"]:
        assert 0 < step["generation"] < step["seconds"]
        assert 0 < step["tokens"] <= 16 * 60
        assert {"loss", "grad_norm", "entropy"} <= set(step["figures"])
    assert document["seconds_per_step"] == document["steps"][1]["seconds"]
    assert "chunk_gated_delta_rule reference" in document["kernels"]
    assert document["coordinates"] == 30_784 // 2
    assert snapshot(tmp_path) == before
