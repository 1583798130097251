"""Told to stop, and told how far a step has come."""

import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from tests.unit.stack import require_trainer
from toolkit.errors import IncompleteError
from toolkit.lab.play import language_model_run
from toolkit.lab.play.stopping import Pace, stopping


def told_to_stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)


def work() -> None:
    with stopping(lambda: "x-s0, after step 3 of 8", lambda: "the same command goes on"):
        try:
            told_to_stop()
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

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert done == [before]


def test_a_word_is_said_now_and_then() -> None:
    said: list[str] = []
    pace = Pace(said.append, pause_s=0.2)
    pace("too early")
    time.sleep(0.25)
    pace("now")
    pace("too early again")
    assert said == ["now"]
    every = Pace(said.append, pause_s=0)
    every("a")
    every("b")
    assert said[1:] == ["a", "b"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a small untrained model."""
    require_trainer()
    from tests.unit.lab.training.language_model.small_model import a_tokenizer, saved

    return saved(tmp_path_factory.mktemp("model"), a_tokenizer())


def test_a_training_says_how_far_each_step_has_come_and_stops_where_it_is_told(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rollouts, micro-batches and blocks of an evaluation; the checkpoint before is what goes on."""
    from tests.unit.lab.study import train_in_a_folder

    monkeypatch.setattr(language_model_run.stopping, "Pace", partial(Pace, pause_s=0))
    said: list[str] = []

    def stop(text: str) -> None:
        said.append(text)
        if text.startswith("step 3 of"):
            told_to_stop()

    with pytest.raises(IncompleteError, match="told to stop") as raised:
        train_in_a_folder.train(tmp_path, model, stop)
    assert raised.value.where == "c2-paired-s3, after step 3 of 4"
    assert "from the checkpoint at step 2" in str(raised.value.remedy)
    assert "step 1: 8 of 8 rollouts are over" in said
    assert "step 1: 2 of 2 micro-batches trained" in said
    assert "step 0: 0 of 3 blocks evaluated" in said
