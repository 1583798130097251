"""An example's logs with one sample damaged after the freeze: its rules decide, or the refusal is right."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import run
from tests.own_study import frozen
from toolkit.places import HOME_VARIABLE

Sample = dict[str, Any]
FILE = "samples_capitals_*.jsonl"
UNSAID = object()


def put(**changes: object) -> Callable[[list[Sample]], list[Sample]]:
    """Return what changes keys of the fourth sample, or drops them."""

    def damage(samples: list[Sample]) -> list[Sample]:
        changed = {name: value for name, value in (samples[3] | changes).items() if value is not UNSAID}
        return [*samples[:3], changed, *samples[4:]]

    return damage


# What is done to the samples → the verdict of H1 and how many of 120 episodes are missing, or the refusal
DAMAGES: dict[str, tuple[Callable[[list[Sample]], list[Sample]], str, int]] = {
    "none": (lambda samples: samples, "miss", 0),
    "another order": (lambda samples: samples[::-1], "miss", 0),
    "dropped": (lambda samples: samples[:3] + samples[4:], "miss", 1),
    "without a metric": (put(acc=None), "miss", 1),
    "with no number": (put(acc=float("nan")), "miss", 1),
    "half graded": (put(acc=0.5), "a value that true_success cannot have", 0),
    "with another word": (put(acc="maybe"), "a value that true_success cannot have", 0),
    "there twice": (lambda samples: [*samples, samples[3]], "twice", 0),
    "there twice, and graded otherwise": (
        lambda samples: [*samples, samples[3] | {"acc": 1 - samples[3]["acc"]}],
        "twice",
        0,
    ),
    "of another number": (put(doc_id=4000), "not_evaluable", 0),
    "of no number": (put(doc_id=UNSAID), "no value for task", 0),
}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return frozen("benchmark", tmp_path_factory.mktemp("damaged"))


@pytest.fixture
def project(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = shutil.copytree(example, tmp_path / "benchmark")
    monkeypatch.setenv(HOME_VARIABLE, str(folder))
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_sample_is_missing_or_refused_and_never_made_up(project: Path, name: str) -> None:
    damage, said, missing = DAMAGES[name]
    (path,) = (project / "logs/lab__wide").glob(FILE)
    samples = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(json.dumps(sample) + "\n" for sample in damage(samples)), encoding="utf-8")
    done = run("registers", "import", "benchmark", "logs")
    if said not in ("miss", "not_evaluable"):
        done.refused(done.code, said)
        assert done.code in (2, 4)
        return
    assert done.code == 0, done.err
    (decision,) = run("decide", "H1", "--study", "benchmark", "--json").json()
    assert decision["verdict"] == said
    assert sum(each["missing"] for each in decision["estimate"]["coverage"]) == missing
