"""Logs of Inspect: what its own reader says of them is what the table says, and hostile ones are refused."""

import json
import re
import sys
import zipfile
import zlib
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import CHECKOUT
from tests.unit.stack import require_inspect
from toolkit.drafting.outline import outlined, scaffold
from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.columns import MissingData
from toolkit.registers.importing.mapping import parse_mapping
from toolkit.registers.importing.readers import inspect_logs
from toolkit.registers.importing.readers.inspect_logs import checked_copy
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import Log
from toolkit.registers.importing.tables import tables_of

LOGS = CHECKOUT / "tests" / "fixtures" / "logs" / "inspect"
FOLDERS = ("strategies", "letters", "refusals", "troubled", "halted")


@pytest.fixture
def inspect() -> None:
    require_inspect()


def read(folder: str) -> Log:
    return read_log([LOGS / folder])


def told(file: Path) -> Any:
    """Return a log as Inspect reads it, with every sample in full."""
    from inspect_ai.log import read_eval_log

    return read_eval_log(str(file))


def only(folder: str) -> Path:
    (file,) = (LOGS / folder).iterdir()
    return file


def members(file: Path) -> dict[str, bytes]:
    import inspect_ai.log  # noqa: F401 - it teaches zipfile Zstandard

    with zipfile.ZipFile(file) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def archive(path: Path, contents: dict[str, bytes], packed: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", packed) as made:
        for name, content in contents.items():
            made.writestr(zipfile.ZipInfo(name), content, packed)
    return path


def copied(path: Path) -> tuple[Path, set[tuple[str, int]]]:
    folder = path.parent / "copy"
    folder.mkdir(exist_ok=True)
    return checked_copy(path, folder)


EMPTY = {"header.json": b"{}", "summaries.json": b"[]"}


@pytest.mark.parametrize("folder", ["strategies", "letters", "refusals"])
def test_means_are_the_accuracies_that_inspect_reports(inspect: None, folder: str) -> None:
    log = read(folder)
    outcome = "score" if folder == "letters" else "true_success"
    assert len(log.files) == log.table["file"].n_unique() == len(list((LOGS / folder).iterdir()))
    for file in log.files:
        (score,) = told(file).results.scores
        mine = log.table.filter(pl.col("file") == file.stem)
        assert mine[outcome].mean() == pytest.approx(score.metrics["accuracy"].value)
        assert mine["scorer"].unique().to_list() == [score.name]


def test_scores_of_several_scorers_have_a_column_each(inspect: None) -> None:
    log = read("troubled")
    results = {score.name: score for score in told(only("troubled")).results.scores}
    assert log.table["score.match"].mean() == pytest.approx(results["match"].metrics["accuracy"].value)
    assert log.table["score.judged.style"].mean() == results["style"].metrics["mean"].value
    assert log.table["score.judged.length"].mean() == results["length"].metrics["mean"].value
    # Which of them it is, is the owner's to say.
    assert not {"score", "true_success"} & set(log.table.columns)
    two_models = pl.concat([log.table, log.table.with_columns(model=pl.lit("other"))])
    of_both = Log(log.format, two_models, log.of_run)
    named = outlined("mine", of_both, {"true_success": "score.match", "arm": "model"})
    assert named.columns["true_success"] == "score.match"


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_sample_is_a_row_with_what_it_says(inspect: None, folder: str) -> None:
    log = read(folder)
    assert log.table["row of the table"].to_list() == list(range(1, log.table.height + 1))
    for file in log.files:
        whole = told(file)
        rows = log.table.filter(pl.col("file") == file.stem).to_dicts()
        mine = {(row["task"], row["schedule"]): row for row in rows}
        assert set(mine) == {*product(whole.eval.dataset.sample_ids, range(whole.eval.config.epochs))}
        for sample in whole.samples:
            row = mine.pop((sample.id, sample.epoch - 1))
            assert (row.get("prompt") or row["input"], row["target"]) == (sample.input, sample.target)
            assert row["tokens"] == (sum(one.total_tokens for one in sample.model_usage.values()) or None)
            assert row["metadata.size"] == sample.metadata["size"]
            assert row.get("error") == (sample.error.message if sample.error else row.get("error"))
            assert row.get("limit") == (sample.limit.type if sample.limit else None)
            assert (row["total_time"], row["message_count"]) == (sample.total_time, len(sample.messages))
            assert row["sample.uuid"] == sample.uuid
        for row in mine.values():
            assert row["error"] == f"not in the log, whose status is {whole.status}"
            assert row["true_success"] is None


def test_runs_say_their_configuration(inspect: None) -> None:
    log = read("strategies")
    for file in log.files:
        whole = told(file)
        expected = {
            "pool": whole.eval.task,
            "model": whole.eval.model,
            "seed": whole.plan.config.seed,
            "generate.temperature": whole.plan.config.temperature,
            "task_args.strategy": whole.eval.task_args["strategy"],
            "launched_at": whole.eval.created,
            "solver": " + ".join(step.solver for step in whole.plan.steps),
        }
        mine = log.table.filter(pl.col("file") == file.stem)
        assert mine.select(*expected).unique().to_dicts() == [expected]
    assert set(read("troubled").table["config.message_limit"]) == {2}


def test_what_has_no_column_is_named(inspect: None) -> None:
    assert {"metadata.parts", "messages, outputs, events and stores of samples"} <= set(
        read("strategies").left_out
    )
    assert "config.sample_id" in read("letters").left_out


def test_a_failed_sample_has_its_error_and_no_outcome(inspect: None) -> None:
    rows = {row["task"]: row for row in read("troubled").table.to_dicts()}
    assert "the tool fell over" in rows["sum/01"]["error"]
    assert rows["sum/01"]["score.match"] is None
    assert (rows["sum/10"]["limit"], rows["sum/10"]["score.match"]) == ("message", 1.0)
    assert rows["sum/11"]["score.judged.style"] is None  # NaN: it was not scored
    halted = read("halted").table
    assert halted["true_success"].to_list() == [False, *[None] * 7]
    assert halted["error"].null_count() == 1


def test_a_refusal_is_no_success_and_stays_told(inspect: None) -> None:
    refused = read("refusals").table.filter(pl.col("score.refusals.value") == "N")
    assert refused["task"].to_list() == ["sum/00"] * 4
    assert not refused["true_success"].any()


def test_two_strategies_are_two_arms_of_a_study(inspect: None) -> None:
    log = read("strategies")
    outline = outlined("mine", log)
    assert outline.columns["arm"] == "task_args.strategy"
    assert (outline.arms, outline.seeds) == (("cot", "direct"), (0, 1))
    assert (outline.tasks, outline.schedules) == (4, 2)
    made = tables_of(log.table, parse_mapping(scaffold(outline, "me/mine")["mappings/mine.toml"]))
    assert made["runs"]["episodes"].to_list() == [8] * 4
    logs = [told(file) for file in log.files]
    rates = {(one.eval.task_args["strategy"], one.plan.config.seed): one.results.scores[0] for one in logs}
    for run in made["evaluations"].to_dicts():
        accuracy = rates[run["arm"], run["seed"]].metrics["accuracy"].value
        assert run["successes"] / run["episodes"] == pytest.approx(accuracy)
    assert made["task_pools"]["prompt"].to_list() == ["0 + 0 =", "0 + 1 =", "1 + 0 =", "1 + 1 ="]
    of_models = outlined("mine", read("letters")).columns
    assert (of_models["arm"], of_models["score"]) == ("model", "score")


def test_both_formats_give_the_same_table(inspect: None, tmp_path: Path) -> None:
    from inspect_ai.log import write_eval_log

    file = only("troubled")
    write_eval_log(told(file), str(tmp_path / f"{file.stem}.json"))
    as_json, as_archive = read_log([tmp_path]), read_log([file])
    assert as_json.table.equals(as_archive.table.select(as_json.table.columns))
    assert set(as_json.table.columns) == set(as_archive.table.columns)


def test_an_unfinished_log_is_read_from_its_journal(inspect: None, tmp_path: Path) -> None:
    file = only("halted")
    journal = {n: c for n, c in members(file).items() if n not in {"header.json", "summaries.json"}}
    log = read_log([archive(tmp_path / "log.eval", journal)])
    assert log.table["status"].unique().to_list() == ["started"]
    finished = read("halted").table
    assert log.table["true_success"].to_list() == finished["true_success"].to_list()


WITHDRAWN = {
    "leaked": ({"invalidation": {"reason": "leaked"}}, "invalidated: leaked", "1 invalidated"),
    "no reason": ({"invalidation": {}}, "invalidated", "1 invalidated"),
    "scored although it failed": ({"error": "it fell over"}, "it fell over", "1 with an error"),
    "cancelled": ({"limit": "stopped"}, "cancelled: stopped", "1 cancelled"),
    "dropped": (None, "not in the log, whose status is success", "1 not in the log"),
}


@pytest.mark.parametrize("ending", [".eval", ".json"])
@pytest.mark.parametrize("case", WITHDRAWN)
def test_a_withdrawn_sample_has_no_outcome(inspect: None, tmp_path: Path, case: str, ending: str) -> None:
    from inspect_ai.log import EvalError, EvalSampleLimit, ProvenanceData, invalidate_samples, write_eval_log

    change, error, counted = WITHDRAWN[case]
    log = told(min((LOGS / "strategies").iterdir()))
    sample = log.samples[0]
    whole = len(log.samples)
    assert sample.scores
    if change is None:
        log.samples = log.samples[1:]
    elif "invalidation" in change:
        mark = ProvenanceData(author="me", **change["invalidation"])
        log = invalidate_samples(log, [sample.uuid], mark)
    elif "error" in change:
        sample.error = EvalError(message=change["error"], traceback="", traceback_ansi="")
    else:
        sample.limit = EvalSampleLimit(type="operator", limit=1, reason=change["limit"])
    write_eval_log(log, str(tmp_path / f"log{ending}"))
    read = read_log([tmp_path])
    (row,) = read.table.filter(pl.col("true_success").is_null()).to_dicts()
    assert (row["task"], row["schedule"], row["error"]) == (sample.id, sample.epoch - 1, error)
    assert (read.table.height, read.table["error"].null_count()) == (whole, whole - 1)
    assert f"outcomes of withdrawn samples: {counted}" in read.left_out


# The outcomes of the samples in two logs of one task: success, failure, error, - for a sample that is absent;
# whether the logs are refused where an episode has one attempt; the outcomes of the first, and of the last.
TRIES = [
    ("SSSF", "F---", True, "SSSF", "FSSF"),
    ("SEEF", "-SS-", True, "SEEF", "SSSF"),
    ("SS--", "--FF", False, "SSFF", "SSFF"),
    ("ESSS", "SE--", True, "ESSS", "SESS"),
    ("SS--", "--F-", False, "SSF-", "SSF-"),
]


@pytest.mark.parametrize(("earlier", "later", "is_refused", "first", "last"), TRIES)
def test_what_counts_of_two_tries_is_registered(
    inspect, tmp_path, earlier, later, is_refused, first, last
) -> None:
    from inspect_ai.log import EvalError, write_eval_log

    whole = told(min((LOGS / "strategies").iterdir()))
    whole.samples = [one for one in whole.samples if one.epoch == 1]
    whole.eval.config.epochs = 1
    # It is not the name of a file that says which is the later.
    for year, name, outcomes in ((2031, "b", earlier), (2032, "a", later)):
        log = whole.model_copy(deep=True)
        log.eval.created = f"{year}-01-01T00:00:00+00:00"
        for sample, outcome in zip(log.samples, outcomes, strict=True):
            (score,) = sample.scores.values()
            score.value = "C" if outcome == "S" else "I"
            if outcome == "E":
                sample.error = EvalError(message="lost", traceback="", traceback_ansi="")
        log.samples = [one for one, outcome in zip(log.samples, outcomes, strict=True) if outcome != "-"]
        write_eval_log(log, str(tmp_path / f"{name}.eval"))
    log = read_log([tmp_path])
    both = sum(a != "-" != b for a, b in zip(earlier, later, strict=True))
    assert any(f"b.eval and a.eval are tries of one task: {both} samples" in what for what in log.left_out)
    two_models = pl.concat([log.table, log.table.with_columns(model=pl.lit("other"))])
    outline = outlined("mine", Log(log.format, two_models, log.of_run), {"arm": "model"})
    assert (outline.schedules, outline.episodes) == (1, 4)
    drafted = scaffold(outlined("mine", read("strategies")), "me/mine")["mappings/mine.toml"]
    mapping = parse_mapping(drafted.replace('prompt = "prompt"\n', ""))

    def counted(attempts: str) -> str:
        missing = MissingData("excluded", Fraction(1), attempts)
        rows = tables_of(log.table, mapping, missing=missing)["episodes"]
        told = rows["true_success"].to_list()
        gone = rows["missing"].to_list() if "missing" in rows.columns else [False] * len(told)
        return "".join("?" if none else "FS"[is_so] for none, is_so in zip(gone, told, strict=True))

    missing = str.maketrans("E-", "??")
    assert (counted("first"), counted("last")) == (first.translate(missing), last.translate(missing))
    if is_refused:
        with pytest.raises(DamagedError, match=r"twice[\s\S]*\d of b and \d+ of a"):
            counted("one")
    else:
        assert counted("one") == first.translate(missing)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("header.json", content) for content in (b"[1]", b"{}", b"[" * 100_000)),
        *(("summaries.json", content) for content in (b'[{"id": [[1]], "epoch": 1}]', b"nothing")),
    ],
)
def test_documents_that_make_no_sense_are_one_error(inspect, tmp_path, name, content) -> None:
    archive(tmp_path / "log.eval", members(only("troubled")) | {name: content})
    with pytest.raises(DamagedError, match="log of Inspect"):
        read_log([tmp_path / "log.eval"])


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("header.json", lambda header: header | {"version": 3}, "newer version"),
        ("summaries.json", lambda samples: samples[1:], r"leave out[\s\S]*sum/00 \(epoch 1\)"),
    ],
)
def test_a_newer_version_and_samples_that_are_left_out_are_refused(
    inspect, tmp_path, name, change, problem
) -> None:
    contents = members(only("troubled"))
    changed = json.dumps(change(json.loads(contents[name]))).encode()
    archive(tmp_path / "log.eval", contents | {name: changed})
    with pytest.raises(DamagedError) as refused:
        read_log([tmp_path / "log.eval"])
    assert re.search(problem, str(refused.value))


def test_a_json_log_that_ends_too_early_is_refused(inspect: None, tmp_path: Path) -> None:
    whole = next((LOGS / "letters").iterdir()).read_bytes()
    (tmp_path / "log.json").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DamagedError, match="not a log of Inspect"):
        read_log([tmp_path / "log.json"])


def test_logs_without_a_score_are_refused_with_what_went_wrong(inspect: None, tmp_path: Path) -> None:
    from inspect_ai.log import write_eval_log

    whole = told(only("troubled"))
    whole.samples = [sample for sample in whole.samples if sample.error]
    assert whole.samples
    for sample in whole.samples:
        sample.scores = None
    write_eval_log(whole, str(tmp_path / "log.eval"))
    with pytest.raises(IncompleteError) as refused:
        read_log([tmp_path / "log.eval"])
    assert "no sample of the logs has a score" in str(refused.value)
    assert "the tool fell over" in str(refused.value)


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(IncompleteError) as refused:
        read("strategies")
    assert "pip install 'paired-rollouts-toolkit[inspect]'" in str(refused.value)


def test_what_is_no_log_of_inspect_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"status": "success"}')
    assert not inspect_logs.INSPECT.files(tmp_path)
    assert not inspect_logs.INSPECT.files(tmp_path / "absent.eval")
    assert inspect_logs.INSPECT.files(LOGS)


@pytest.mark.parametrize(
    "name",
    [
        *("../header.json", "samples/../../x_epoch_1.json", "samples\\..\\..\\x.json", "/etc/x.json"),
        *("\\x.json", "C:/x.json", "samples/x_epoch_1.pkl", "run.py", "samples/"),
    ],
)
def test_members_that_inspect_does_not_write_are_refused(tmp_path: Path, name: str) -> None:
    path = archive(tmp_path / "log.eval", EMPTY | {name: b"x"})
    with pytest.raises(DamagedError, match="a member that Inspect does not write") as refused:
        copied(path)
    assert repr(name) in str(refused.value)


def test_only_what_is_read_is_copied(tmp_path: Path) -> None:
    contents = EMPTY | {"samples/a/b_epoch_2.json": b"not opened", "samples/c_epoch_1/sample.json": b""}
    path = archive(tmp_path / "given.eval", contents | {"_journal/start.json": b"{}"})
    copy, samples = copied(path)
    assert samples == {("a/b", 2), ("c", 1)}
    with zipfile.ZipFile(copy) as opened:
        assert {name: opened.read(name) for name in opened.namelist()} == EMPTY


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.eval", EMPTY | {"summaries.json": b" " * 2**24})
    with pytest.raises(DamagedError, match="unpacks to more than one can"):
        copied(path)


def test_a_member_that_unpacks_to_more_than_is_written_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.eval", EMPTY | {"summaries.json": b" " * 2**24})
    raw = path.read_bytes()
    for true, claimed in ((2**24, 100), (zlib.crc32(b" " * 2**24), zlib.crc32(b" " * 101))):
        raw = raw.replace(true.to_bytes(4, "little"), claimed.to_bytes(4, "little"))
    path.write_bytes(raw)
    with pytest.raises(DamagedError, match="readable archive") as refused:
        copied(path)
    assert "summaries.json is not what the archive says of it" in str(refused.value)


@pytest.mark.parametrize(
    ("bound", "most", "says"),
    [
        ("MOST_MEMBERS", 1, "members"),
        ("LARGEST_TABLE", 1, "bytes"),
        ("LARGEST_DIRECTORY", 50, "list of members"),
    ],
)
def test_an_archive_has_bounds(tmp_path, monkeypatch, bound, most, says) -> None:
    path = archive(tmp_path / "log.eval", EMPTY)
    copied(path)
    monkeypatch.setattr(inspect_logs, bound, most)
    with pytest.raises(DamagedError, match=says):
        copied(path)


def encrypted(raw: bytes) -> bytes:
    flags = raw.index(b"PK\x01\x02") + 8
    return raw[:flags] + b"\x01" + raw[flags + 1 :]


DAMAGE = {
    "cut": (lambda raw: raw[:-30], "no end of an archive"),
    "no zip": (lambda _: b"PK, but no more", "no end of an archive"),
    "empty": (lambda _: b"", "no end of an archive"),
    "flipped": (lambda raw: raw.replace(b"{}", b"[}", 1), "header.json is not what the archive says of it"),
    "encrypted": (encrypted, "header.json is encrypted"),
    "bzip2": (lambda raw: raw, "packed in another way"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_archive_is_one_error(tmp_path: Path, damage: str) -> None:
    packed = zipfile.ZIP_BZIP2 if damage == "bzip2" else zipfile.ZIP_STORED
    path = archive(tmp_path / "log.eval", EMPTY, packed)
    change, says = DAMAGE[damage]
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DamagedError, match=r"log\.eval is not a readable archive of Inspect") as refused:
        copied(path)
    assert says in str(refused.value)
