"""The output of every program that is read becomes a registered, decided study with a site."""

import json
import shutil
import time
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from tests.conftest import CHECKOUT, run
from toolkit.files import file_sha256
from toolkit.places import HOME_VARIABLE

# Program → its log, which files have outcomes and where in a row (none: its models change their parts), and
# what a draft is told
SOURCES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "lm-evaluation-harness": ("lm_eval/models", "samples_*.jsonl", "acc", ("--arm", "model")),
    "Every Eval Ever": ("every_eval_ever/lm_eval", "*_samples.jsonl", "evaluation.score", ()),
    "promptfoo": ("promptfoo/repeats", "*.jsonl", "success", ()),
    "OpenAI evals": ("openai_evals/sums", "*.jsonl", "data.correct", ()),
    "MLflow": ("mlflow/traces", "*.csv", '""feedback"": {""value"": ', ()),
    "BFCL": ("bfcl", "", "", ()),
    "tau2": ("tau2", "", "", ("--success", "true_success")),
    "tau-bench": ("tau_bench", "", "", ()),
    "HELM": ("helm", "", "", ("--success", "exact_match")),
    "SWE-bench": ("swe_bench", "", "", ()),
    "TRL": ("trl", "*.parquet", "digit", ()),
    "toolkit.noise.trainers": ("pairing", "*.jsonl", "true_outcomes", ()),
    "verl": ("verl", "*.jsonl", "acc", ("--success", "acc")),
    "datasets, saved": ("hub_dataset/saved", "*.arrow", "correct", ()),
    "datasets, a repository": ("hub_dataset/repository", "*.parquet", "correct", ()),
}


@pytest.mark.slow
@pytest.mark.parametrize("program", SOURCES)
def test_a_log_becomes_a_decided_study_with_a_site(program, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    source, files, outcome, options = SOURCES[program]
    played = played_again(LOGS / source, tmp_path / "played", files, outcome)
    done = journey(tmp_path, LOGS / source, played, *options)
    assert done.commands <= MOST_COMMANDS
    assert done.seconds < MOST_SECONDS
    assert set(done.verdicts) == {"H1"}
    assert done.verdicts["H1"] in {"pass", "miss"}
    assert (done.site / "mine" / "H1.html").is_file()


LOGS = CHECKOUT / "tests" / "fixtures" / "logs"
MOST_COMMANDS, MOST_SECONDS = 9, 120


@dataclass(frozen=True)
class Journey:
    """What came of a log."""

    commands: int  # that were given
    verdicts: dict[str, str]  # rule → verdict
    seconds: float  # how long they took
    site: Path  # the folder with the pages


def played_again(log: Path, target: Path, files: str, outcome: str) -> Path:
    """Copy a log with the other outcome in every row: what the study's own runs could be."""
    if not files:
        for path in filter(Path.is_file, log.rglob("*")):
            written = target / _of_others(path.relative_to(log).as_posix())
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(_of_others(path.read_text("utf-8")), "utf-8")
        return target
    shutil.copytree(log, target)
    for path in target.rglob(files):
        if path.suffix == ".parquet":
            pl.DataFrame(_otherwise(pl.read_parquet(path).to_dicts(), outcome)).write_parquet(path)
        elif path.suffix == ".arrow":
            with pa.ipc.open_stream(path.read_bytes()) as stream:
                table = stream.read_all()
            rows = pa.Table.from_pylist(_otherwise(table.to_pylist(), outcome), table.schema)
            with pa.ipc.new_stream(path, table.schema) as written:
                written.write_table(rows)
        elif path.suffix == ".csv":  # of JSON
            first, *others = path.read_text("utf-8").split(outcome)
            others = [f"false{one[4:]}" if one[0] == "t" else f"true{one[5:]}" for one in others]
            path.write_text(outcome.join([first, *others]), "utf-8")
        else:
            before = file_sha256(path)
            lines = _otherwise(list(map(json.loads, path.read_text("utf-8").splitlines())), outcome)
            path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
            for record in path.parent.glob("*.json"):
                record.write_text(record.read_text("utf-8").replace(before, file_sha256(path)), "utf-8")
    return target


def _of_others(text: str) -> str:
    return text.replace("tiny-a", "tiny-c").replace("tiny-b", "tiny-a").replace("tiny-c", "tiny-b")


def _otherwise(rows: list[dict[str, Any]], outcome: str) -> list[dict[str, Any]]:
    *above, name = outcome.split(".")
    for row in rows:
        try:
            place = reduce(getitem, above, row)
            value = place[name]
        except KeyError:  # an event of another type
            continue
        if isinstance(value, list):
            place[name] = [1.0] * len(value)  # no rollout is observed as better than it was
        elif value is not None:
            place[name] = type(value)(1 - value)
    return rows


def journey(project: Path, pilot: Path, played: Path, *options: str) -> Journey:
    """Go from a pilot to a site, in an empty project."""
    began = time.monotonic()
    commands = [
        ("new-study", "mine", "--table", pilot, *options, "--into", "."),
        ("rehearse", "mine", pilot, "--simulations", "20"),
        ("freeze", "mine", "--demonstration"),
        ("registers", "import", "mine", played),
        ("decide", "--all", "--json"),
        ("site", "build"),
    ]
    for command in commands:
        if command[:2] == ("registers", "import"):
            run(*command[:3], pilot).refused(2, "these rows are the pilot's")
        done = run(*command)
        # The logs are older than this freeze, and where they say when they were launched, it is noticed.
        was_late = command[0] == "decide" and "freeze before runs" in done.err
        assert done.code == int(was_late), (command, done.err or done.out)
        if command[0] == "new-study":
            _fill_in(project)
        if command[0] == "decide":
            verdicts = {decision["rule"]: decision["verdict"] for decision in done.json()}
    return Journey(len(commands), verdicts, time.monotonic() - began, project / "site")


def _fill_in(project: Path) -> None:
    for path in [*project.glob("prereg/mine/*"), *project.glob("cards/*.md")]:
        text = path.read_text(encoding="utf-8").replace("FILL IN", "said")
        # The last item of some logs is an error, so that there are more than are usual.
        path.write_text(text.replace('most = "0.05"', 'most = "0.2"'), encoding="utf-8")
