"""Outputs of lm-evaluation-harness: their means are the harness's own, and hostile ones are refused."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import Toolkit
from tests.unit.registers.importing import logs
from tests.unit.registers.importing.logs import lines
from toolkit.drafting.outline import outlined
from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.importing.readers import common, lm_eval
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import Log

LOGS = logs.LOGS / "lm_eval"


@cache
def read(folder: str) -> Log:
    return read_log([LOGS / folder])


def results(folder: Path) -> list[tuple[str, Any]]:
    """Return the harness's results by the name that the table has for their file."""
    files = sorted(folder.rglob("results_*.json"))
    return [
        (file.relative_to(folder).as_posix().removesuffix(".json"), json.loads(file.read_text()))
        for file in files
    ]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Return a copy of one run of one task, to be changed."""
    shutil.copytree(LOGS / "metrics" / "lab__tiny-a", tmp_path / "run")
    return tmp_path / "run"


def samples(folder: Path) -> Path:
    (file,) = folder.glob("samples_*")
    return file


def rewritten(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change every sample of a run."""
    content = lines(samples(folder))
    for line in content:
        change(line)
    samples(folder).write_text("".join(f"{json.dumps(line)}\n" for line in content))


def described(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    (file,) = folder.glob("results_*")
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def test_means_are_those_that_the_harness_reports() -> None:
    table = read("models").table
    for name, whole in results(LOGS / "models"):
        for task in whole["n-samples"]:
            part = table.filter(pl.col("file") == name, pl.col("pool") == task)
            assert part.height == whole["n-samples"][task]["effective"]
            assert part["true_success"].mean() == pytest.approx(whole["results"][task]["acc,none"])
    assert table["metric"].unique().to_list() == ["acc"]
    assert table.height == 48


def test_every_filter_is_a_regime_where_there_are_several() -> None:
    log = read("filters")
    ((_, whole),) = results(LOGS / "filters")
    means = dict(log.table.group_by("regime").agg(pl.col("true_success").mean()).rows())
    told = whole["results"]["sums_text"]
    assert means == {name: told[f"exact_match,{name}"] for name in ("strict", "flexible")}
    assert "filter" not in log.table.columns
    assert any("repeats" in text and "sums_text: 2" in text for text in log.left_out)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return samples with two filters as versions before 0.4.8 wrote them, to be changed."""
    (run,) = (LOGS / "filters").iterdir()
    shutil.copytree(run, tmp_path / "old")
    rewritten(tmp_path / "old", lambda line: line.pop("filter"))
    return tmp_path / "old"


def test_filters_that_samples_do_not_name_are_those_of_the_results(old: Path) -> None:
    own, named = read_log([old]).table, read("filters").table
    same = ["regime", "task", "true_success"]
    assert own.select(same).equals(named.select(same))


UNNAMED = {
    "one figure": (
        lambda name: name.endswith(",flexible"),
        "1 a document, for each filter of the results: strict",
    ),
    "no figures": (lambda name: "," in name, "1 a document, for each filter of the results: none"),
}


@pytest.mark.parametrize("case", UNNAMED)
def test_filters_that_nothing_names_are_refused(old: Path, case: str) -> None:
    is_gone, expected = UNNAMED[case]

    def change(whole: dict[str, Any]) -> None:
        (task,) = whole["results"]
        whole["results"][task] = {
            name: value for name, value in whole["results"][task].items() if not is_gone(name)
        }

    described(old, change)
    error = logs.refused(old, match="do not say which filter")
    assert (error.expected, error.found) == (expected, "2 of document 0 of sums_text")
    assert "not repetitions" in str(error)


def test_several_metrics_have_a_column_each() -> None:
    table = read("metrics").table
    ((_, whole),) = results(LOGS / "metrics")
    for metric in ("acc", "acc_norm"):
        assert table[metric].mean() == pytest.approx(whole["results"]["sums_both"][f"{metric},none"])
    assert not {"score", "true_success", "metric"} & set(table.columns)
    assert table["filter"].unique().to_list() == ["none"]


def test_every_line_is_a_row_with_what_it_says() -> None:
    log = read("models")
    for file in (file for file in log.files if file.suffix == ".jsonl"):
        name = f"{file.parent.name}/results_{file.stem.rpartition('_')[2]}"
        task = file.name.removeprefix("samples_").rpartition("_")[0]
        rows = log.table.filter(pl.col("file") == name, pl.col("pool") == task).to_dicts()
        for row, line in zip(rows, lines(file), strict=True):
            assert (row["task"], row["schedule"]) == (str(line["doc_id"]), 0)
            assert row["true_success"] is bool(line["acc"])
            same = ("filter", "target", "doc_hash", "prompt_hash", "target_hash")
            assert [row[key] for key in same] == [line[key] for key in same]
            of_document = {key: row[f"doc.{key}"] for key in ("question", "answer", "target")}
            assert of_document.items() <= line["doc"].items()
    assert {"doc.choices", "resps", "filtered_resps", "arguments (the prompts)"} <= set(log.left_out)


def test_runs_say_their_configuration() -> None:
    table = read("models").table
    for name, whole in results(LOGS / "models"):
        mine = table.filter(pl.col("file") == name, pl.col("pool") == "sums_cot")
        named = ("model", "seed", "num_fewshot", "model_args.dtype", "config.torch_seed", "task.doc_to_text")
        (row,) = mine.select(named).unique().rows()
        config = whole["config"]
        told = whole["configs"]["sums_cot"]["doc_to_text"]
        assert row == (whole["model_name"], config["random_seed"], 0, "float32", config["torch_seed"], told)
        (launched,) = table.filter(pl.col("file") == name)["launched_at"].unique()
        assert datetime.fromisoformat(launched) == datetime.fromtimestamp(round(whole["date"], 6), UTC)
    assert read("metrics").table.select("seed", "config.numpy_seed").unique().rows() == [(0, 1234)]


def test_rules_are_drafted_for_a_pool_and_a_regime_that_occur_together() -> None:
    outline = outlined("mine", read("."))
    assert (outline.pools[0], outline.regimes, outline.tasks) == (
        "sums_both",
        ("none", "flexible", "strict"),
        6,
    )


def test_samples_and_results_can_be_named_themselves(mine: Path) -> None:
    (described_by,) = mine.glob("results_*")
    whole = read_log([mine]).table
    assert read_log([samples(mine)]).table.equals(whole)
    assert read_log([described_by]).table.equals(whole)


def test_many_tasks_are_pooled_by_their_outermost_group(mine, monkeypatch) -> None:
    monkeypatch.setattr(common, "MOST_POOLS", 4)
    (named,) = mine.glob("results_*")
    whole = json.loads(named.read_text())
    names = [f"part_{number}" for number in range(common.MOST_POOLS + 1)]
    for name in names:
        shutil.copy(samples(LOGS / "metrics" / "lab__tiny-a"), mine / samples_name(name, named))
    (mine / samples_name("sums_both", named)).unlink()
    whole["n-samples"] = {name: {} for name in names}
    whole["group_subtasks"] = {"all": ["half", names[-1]], "half": names[:-1]}
    named.write_text(json.dumps(whole))
    table = read_log([mine]).table
    assert table["pool"].unique().to_list() == ["all"]
    assert table["task"].n_unique() == table.height == 6 * len(names)
    assert table.filter(pl.col("subtask") == "part_3")["task"].to_list() == [f"part_3:{n}" for n in range(6)]


def samples_name(task: str, results_file: Path) -> str:
    return f"samples_{task}_{results_file.stem.removeprefix('results_')}.jsonl"


def test_a_number_for_two_documents_is_refused(mine: Path) -> None:
    shutil.copytree(mine, mine.parent / "other")
    assert read_log([mine.parent]).table.height == 12
    rewritten(
        mine.parent / "other",
        lambda line: line.update(doc_hash="x" if line["doc_id"] == 4 else line["doc_hash"]),
    )
    error = logs.refused(mine.parent, match="different tasks under one name")
    assert "task 4 of sums_both" in str(error)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'{"doc_id": 0, "acc": 1', "line 7, column 23"),
        (b"[1, 2]", "line 7: array"),
        (b"7", "line 7: ubigint"),
        (b'{"doc_id": 6, "doc_id": 7}', "line 7: a name twice"),
        (b'{"doc_id": 6, "doc": {"a": 1, "a": 2}}', "line 7: a name twice"),
        (b'{"doc_id": "\xff"}', "UTF-8"),
        (b'{"a": ' + b"[" * 2**16 + b"}", "line 7 is nested too deeply"),
    ],
)
def test_lines_that_make_no_sense_are_one_error(mine: Path, text: bytes, says: str) -> None:
    with samples(mine).open("ab") as opened:
        opened.write(text + b"\n")
    assert str(samples(mine)) in str(logs.refused(mine, match=says))


@pytest.mark.parametrize(
    ("module", "bound"), [(lm_eval, "LARGEST_TABLE"), (common, "MOST_COLUMNS"), (common, "MOST_CELLS")]
)
def test_samples_have_bounds(mine: Path, monkeypatch: pytest.MonkeyPatch, module: object, bound: str) -> None:
    monkeypatch.setattr(module, bound, 10)
    logs.refused(mine, match="than one can have")


def test_a_line_has_a_bound(mine: Path) -> None:
    with samples(mine).open("a") as opened:
        opened.write(json.dumps({"doc_id": 6, "resps": "x" * (5 * common.LONGEST_LINE // 2)}))
    assert f"{common.LONGEST_LINE} bytes exceeded" in str(logs.refused(mine, match="not an output"))


def test_what_a_new_study_does_not_take_is_printed(toolkit: Toolkit, tmp_path: Path) -> None:
    asked = ("new-study", "mine", "--table", LOGS / "models", "--into")
    told = toolkit(*asked, tmp_path).out
    assert "arm is the log's 'model'" in told
    assert "not used: file, model_args.pretrained" in told
    assert "left out: doc.choices; task.metric_list; arguments (the prompts)" in told
    assert "NOT YET IMPORTABLE" not in told
    document = toolkit(*asked, tmp_path / "other", "--json").json()
    assert (document["problem"], document["left_out"][0]) == (None, "doc.choices")


def test_what_keeps_a_log_from_being_imported_has_lines_of_its_own(toolkit: Toolkit, tmp_path: Path) -> None:
    rows = ("arm,task,success,schedule", "a,1,1,0", "a,1,0,0", "b,1,1,0")
    (tmp_path / "twice.csv").write_text("\n".join(rows))
    told = toolkit("new-study", "mine", "--table", tmp_path / "twice.csv", "--into", tmp_path / "mine").out
    assert "  NOT YET IMPORTABLE: an episode is in the table twice\n    expected: one row" in told


@pytest.mark.parametrize(
    "content", ["[1]", "{", '{"config": [1]}', '{"n-samples": {}, "configs": 3}', "[" * 10**5]
)
def test_results_that_make_no_sense_are_one_error(mine: Path, content: str) -> None:
    (file,) = mine.glob("results_*")
    file.write_text(content)
    with pytest.raises((DamagedError, IncompleteError)) as refused:
        read_log([mine])
    assert file.name in str(refused.value)
