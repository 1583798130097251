"""An example's logs with one sample damaged after the freeze: its rules decide, or the refusal is right."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import run
from tests.own_study import frozen
from toolkit.places import HOME_VARIABLE

Sample = dict[str, Any]
# Study → its log, and the file of it that is damaged
FILES = {
    "benchmark": ("logs", "lab__wide/samples_capitals_*.jsonl"),
    "training-curve": ("runs", "fast-s0/completions/completions_00004.parquet"),
}
UNSAID = object()


def put(**changes: object) -> Callable[[list[Sample]], list[Sample]]:
    """Return what changes keys of the fourth sample, or drops them."""

    def damage(samples: list[Sample]) -> list[Sample]:
        changed = {name: value for name, value in (samples[3] | changes).items() if value is not UNSAID}
        return [*samples[:3], changed, *samples[4:]]

    return damage


# Study → what is done to its samples → the verdict of H1 and how many episodes are missing, or the refusal
BENCHMARK: dict[str, tuple[Callable[[list[Sample]], list[Sample]], str, int]] = {
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


# Of 576 rollouts; a missing score counts for nothing, and H1 has no value then.
TRAINING_CURVE: dict[str, tuple[Callable[[list[Sample]], list[Sample]], str, int]] = {
    "none": (lambda samples: samples, "pass", 0),
    "another order": (lambda samples: samples[::-1], "pass", 0),
    "dropped": (lambda samples: samples[:3] + samples[4:], "not_evaluable", 1),
    "without a reward": (put(vowels=None), "not_evaluable", 1),
    "with no number": (put(vowels=float("nan")), "not_evaluable", 1),
    "beyond its range": (put(vowels=1.5), "a value that score cannot have", 0),
    "below its range": (put(vowels=-0.1), "a value that score cannot have", 0),
    "there twice": (lambda samples: [*samples, samples[3]], "not_evaluable", 0),
    "of another prompt": (put(prompt="Say nothing."), "not_evaluable", 0),
    "of no prompt": (put(prompt=None), "no value for task", 0),
    "without its rewards": (lambda samples: [without(one, "vowels") for one in samples], "not_evaluable", 32),
    "without its prompts": (lambda samples: [without(one, "prompt") for one in samples], "no completions", 0),
}
DAMAGES = {"benchmark": BENCHMARK, "training-curve": TRAINING_CURVE}
CASES = [(study, name) for study, damages in DAMAGES.items() for name in damages]


def without(sample: Sample, name: str) -> Sample:
    return {key: value for key, value in sample.items() if key != name}


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    scratch = tmp_path_factory.mktemp("damaged")
    return {study: frozen(study, scratch) for study in FILES}


@pytest.fixture
def project(examples: dict[str, Path], study: str, tmp_path: Path, monkeypatch) -> Iterator[Path]:
    folder = shutil.copytree(examples[study], tmp_path / study)
    monkeypatch.setenv(HOME_VARIABLE, str(folder))
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(("study", "name"), CASES)
def test_a_damaged_sample_is_missing_or_refused_and_never_made_up(
    project: Path, study: str, name: str
) -> None:
    (damage, said, missing), (log, pattern) = DAMAGES[study][name], FILES[study]
    (path,) = (project / log).glob(pattern)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(damage(pq.read_table(path).to_pylist())), path)
    else:
        samples = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        lines = (json.dumps(sample) + "\n" for sample in damage(samples))
        path.write_text("".join(lines), encoding="utf-8")
    done = run("registers", "import", study, log)
    if said not in ("pass", "miss", "not_evaluable"):
        done.refused(done.code, said)
        assert done.code in (2, 4)
        return
    assert done.code == 0, done.err
    (decision,) = run("decide", "H1", "--study", study, "--json").json()
    assert decision["verdict"] == said
    assert sum(each["missing"] for each in decision["estimate"]["coverage"]) == missing
