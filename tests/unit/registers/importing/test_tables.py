"""A table of episodes becomes runs, episodes, evaluations and tasks; what contradicts itself is refused."""

import gzip
import hashlib
import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import CHECKOUT
from tests.described import SOURCE
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.registers.cards import repository_documents
from toolkit.registers.columns import Column, MissingData, Type
from toolkit.registers.importing import source as module
from toolkit.registers.importing.mapping import parse_mapping, read_mapping
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import ROW, Log, converted, read_source
from toolkit.registers.importing.tables import files_of, rows_of, tables_of
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.study import Study, open_study, verify_study
from toolkit.registers.writer import write_study

MAPPING = (CHECKOUT / "tests/fixtures/mapping.toml").read_text(encoding="utf-8")

ROWS = [
    {"agent": agent, "rng": rng, "problem": problem, "solved": solved}
    for agent, rng, problem, solved in (
        ("two", 0, "p10", 1),
        ("A-1", 0, "p9", 0),
        ("A-1", 0, "p10", 1),
        ("two", 0, "p9", 1),
        ("A-1", 0, "p9", 1),
        ("two", 0, "p9", 0),
    )
]
WORDS = {"arm": ("one", "two"), "regime": ("standard",), "pool": ("tasks",)}
REF = RegistrationRef("mine", "0" * 64, {})


def source(tmp_path: Path, rows: list[dict[str, Any]], name: str = "table.csv") -> pl.DataFrame:
    path = tmp_path / name
    writers = {".csv": "write_csv", ".jsonl": "write_ndjson", ".parquet": "write_parquet"}
    getattr(pl.DataFrame(rows, infer_schema_length=None), writers[path.suffix])(path)
    return read_source(path)


def tables(tmp_path: Path, rows: list[dict[str, Any]], mapping: str = MAPPING) -> dict[str, pl.DataFrame]:
    return tables_of(source(tmp_path, rows), parse_mapping(mapping))


def with_column(ours: str, theirs: str) -> str:
    return MAPPING.replace('task = "problem"', f'task = "problem"\n{ours} = "{theirs}"')


def written(folder: Path, made: dict[str, pl.DataFrame], words: dict[str, tuple[str, ...]]) -> Study:
    files, runs = files_of(made, words), made["runs"].to_dicts()
    card = repository_documents(SOURCE, files, registration=REF, rows={"runs": runs}, words=words)
    documents = {"source/x.txt": b"x", **card}
    write_study(
        folder, study="mine", evidence="rows", registration=REF, files=files, documents=documents, words=words
    )
    return open_study(folder)


def test_episodes_are_numbered_and_counted(tmp_path: Path) -> None:
    made = tables(tmp_path, ROWS)
    assert made["task_pools"].rows() == [("tasks", 0, "p10"), ("tasks", 1, "p9")]
    places = made["episodes"].select("run_id", "task", "schedule", "true_success").rows()
    assert places == [
        ("main-one-s0", 0, 0, True),
        ("main-one-s0", 1, 0, False),
        ("main-one-s0", 1, 1, True),
        ("main-two-s0", 0, 0, True),
        ("main-two-s0", 1, 0, True),
        ("main-two-s0", 1, 1, False),
    ]
    met = made["evaluations"].select("run_id", "episodes", "successes", "tasks", "episodes_per_task").rows()
    assert met == [("main-one-s0", 3, 2, 2, 2), ("main-two-s0", 3, 2, 2, 2)]
    assert made["evaluations"]["task_set"].to_list() == [hashlib.sha256(b"0\n1\n").hexdigest()] * 2
    assert made["runs"].select("run_id", "arm", "seed", "episodes").rows() == [
        ("main-one-s0", "one", 0, 3),
        ("main-two-s0", "two", 0, 3),
    ]


def test_tasks_that_are_numbers_are_in_their_order(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "problem": name} for name in ("10", "9", "100")]
    assert tables(tmp_path, rows)["task_pools"]["task_id"].to_list() == ["9", "10", "100"]


@pytest.mark.parametrize("name", ["table.csv", "table.jsonl", "table.parquet"])
def test_every_sort_of_table_gives_the_same(tmp_path: Path, name: str) -> None:
    made, expected = tables_of(source(tmp_path, ROWS, name), parse_mapping(MAPPING)), tables(tmp_path, ROWS)
    assert all(table.equals(expected[name]) for name, table in made.items())


def test_what_was_not_recorded_is_not_there(tmp_path: Path) -> None:
    study = written(tmp_path / "mine", tables(tmp_path, ROWS), WORDS)
    verify_study(study)
    absent = {"calls", "ended", "schedule_seed", "observed_reward", "transient"}
    assert not absent & set(study.table("episodes").column_names)
    assert not {"fault_rate", "group_size", "launched_at"} & set(study.rows("runs")[0])
    assert study.table("runs").column("arm").choices == ("one", "two")


def test_what_was_recorded_is_counted(tmp_path: Path) -> None:
    rows = [
        {**row, "seen": row["solved"] * (n % 2), "n": n, "end": "finished" if n else "budget_exceeded"}
        for n, row in enumerate(ROWS)
    ]
    mapping = MAPPING.replace(
        'task = "problem"', 'task = "problem"\nobserved_reward = "seen"\ncalls = "n"\nended = "end"'
    )
    study = written(tmp_path / "mine", tables(tmp_path, rows, mapping), WORDS)
    verify_study(study)
    one, two = study.rows("evaluations")
    assert (one["observed_successes"], one["flipped"], one["calls"]) == (0, 2, 1 + 2 + 4)
    assert (two["observed_successes"], two["flipped"], two["calls"]) == (1, 1, 0 + 3 + 5)
    assert (two["finished"], two["budget_exceeded"], "exposed" in two) == (2, 1, False)


def test_a_run_of_several_logs_was_launched_with_the_first(tmp_path: Path) -> None:
    days = (3, 1, 2, 5, 4, 6)
    rows = [row | {"at": f"2031-01-0{day}T00:00:00Z"} for row, day in zip(ROWS, days, strict=True)]
    runs = tables(tmp_path, rows, with_column("launched_at", "at"))["runs"]
    assert [launched.day for launched in runs["launched_at"]] == [1, 3]


MISFITS = {
    "the table lacks a column that": (
        MAPPING.replace('"rng"', '"speed"'),
        "row of|agent, rng, problem, solved",
    ),
    "step cannot have": (MAPPING.replace("step = 0", 'step = "late"'), "'late' in row constant"),
    "an episode is in the table twice": (with_column("schedule", "rng"), "rows 2 and 5: run_id=main-one-s0"),
    "run '0' contradicts itself": (with_column("run_id", "rng"), "one, two"),
    "name that no file can have": (with_column("run_id", "path"), "'../A-1'"),
}


@pytest.mark.parametrize("problem", MISFITS)
def test_rows_that_contradict_the_mapping_or_each_other_are_named(tmp_path: Path, problem: str) -> None:
    mapping, found = MISFITS[problem]
    rows = [row | {"path": f"../{row['agent']}"} for row in ROWS] if "path" in mapping else ROWS
    with pytest.raises(DamagedError, match=problem) as raised:
        tables(tmp_path, rows, mapping)
    assert re.match(found, str(raised.value.found))


@pytest.mark.parametrize(
    ("files", "found", "advised"), [("a", "2 and 5", True), ("ab", "2 of a and 5 of b", False)]
)
def test_an_episode_of_two_files_is_no_repetition(tmp_path, files, found, advised) -> None:
    rows = [row | {"file": files[-1] if number > 2 else files[0]} for number, row in enumerate(ROWS)]
    with pytest.raises(DamagedError, match="in the table twice") as raised:
        tables(tmp_path, rows, with_column("schedule", "rng"))
    assert str(raised.value.found).startswith(f"rows {found}: ")
    assert ("leave schedule out" in str(raised.value)) is advised


def test_a_task_with_two_prompts_is_refused(tmp_path: Path) -> None:
    mapping = with_column("prompt", "text")
    rows = [{**row, "text": "same"} for row in ROWS]
    assert tables(tmp_path, rows, mapping)["task_pools"]["prompt"].to_list() == ["same", "same"]
    rows[0]["text"] = "other"
    with pytest.raises(DamagedError, match="two texts") as raised:
        tables(tmp_path, rows, mapping)
    assert raised.value.found == "task 'p10' of pool 'tasks': 'other' in row 1; 'same' in row 3"


def test_a_task_has_the_prompt_that_any_of_its_rows_says_or_none(tmp_path: Path) -> None:
    rows = [{**row, "text": "said once" if not i else ""} for i, row in enumerate(ROWS)]
    pool = tables(tmp_path, rows, with_column("prompt", "text"))["task_pools"]
    assert dict(pool.select("task_id", "prompt").iter_rows()) == {"p10": "said once", "p9": ""}


def test_more_tasks_than_can_be_numbered_are_refused(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "problem": n} for n in range(2**15 + 1)]
    assert len(tables(tmp_path, rows[1:])["task_pools"]) == 2**15
    with pytest.raises(DamagedError, match="more tasks"):
        tables(tmp_path, rows)


def test_the_guides_mapping_reads_its_table(tmp_path: Path) -> None:
    guide = (CHECKOUT / "GUIDE.md").read_text(encoding="utf-8").partition("### Own logs")[2]
    table, mapping = (re.findall(f"```{kind}\n(.*?)```", guide, re.DOTALL)[0] for kind in ("csv", "toml"))
    (tmp_path / "log.csv").write_text(table, encoding="utf-8")
    read = parse_mapping(mapping)
    log = read_log([tmp_path / "log.csv"])
    rows = rows_of(log.measured(read.columns), read, None, MissingData("failure", Fraction(1), "one"))
    assert rows.sort("task", "arm")["true_success"].to_list() == [True, True, None, False]


def test_an_outcome_that_was_registered_as_a_score_is_a_number_where_every_one_is_0_or_1() -> None:
    log = Log("a log", pl.DataFrame({"true_success": [True, None, False]}))
    scores = log.measured({"score": "score"})["score"]
    assert scores.equals(pl.Series("score", [1.0, None, 0.0]), check_dtypes=True)


UNREADABLE = {
    "empty.csv": b"",
    "headings_only.csv": b"agent,rng\n",
    "ragged.csv": b"agent,rng\n1,2,3\n",
    "no_json.jsonl": b"{agent: 1}\n",
    "no_parquet.parquet": b"agent,rng\n1,2\n",
    "not_utf8.csv": b"agent,rng\n\xff\xfe,2\n",
    "heading_twice.csv": b"success,success\n1,0\n",
    "heading_taken.csv": b"success,row of the table\n1,0\n",
}
HEADINGS = {"heading_twice.csv": "one name", "heading_taken.csv": "name that is taken"}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_table_that_is_none_is_damage(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(UNREADABLE[name])
    with pytest.raises(DamagedError, match=HEADINGS.get(name, "not a readable table|has no rows")):
        read_source(tmp_path / name)


TOO_MUCH = {
    "columns.csv": b",".join(b"c%d" % i for i in range(60)) + b"\n",
    "columns.tsv.gz": gzip.compress(b"\t".join(b"c%d" % i for i in range(60)) + b"\n"),
    "columns.jsonl": b"{%s}\n" % b", ".join(b'"c%d": 1' % i for i in range(60)),
    "columns.parquet": pl.DataFrame({f"c{i}": [1] for i in range(60)}),
    "cells.jsonl": b'{"a": 1, "b": 2}\n' * 600,
    "cells.parquet": pl.DataFrame({"a": [1] * 1200}),
    "bytes in a line.csv": b"a,b\n1," + b"x" * 6000 + b"\n",
    "bytes in a line.jsonl": b'{"a": "' + b"x" * 6000,
    "bytes.csv": b"a,b\n" + b"1,2\n" * 5000,
    "bytes.csv.gz": gzip.compress(b"a,b\n" + b"1,2\n" * 5000),
    "bytes.parquet": pl.DataFrame({"a": ["x" * 999 + str(i) for i in range(30)]}),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_table_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    bounds = {"MOST_COLUMNS": 50, "MOST_CELLS": 1000, "LONGEST_LINE": 5000, "LARGEST_TABLE": 12_000}
    for bound, most in {**bounds, "_BLOCK": 100}.items():
        monkeypatch.setattr(module, bound, most)
    content = TOO_MUCH[name]
    if isinstance(content, pl.DataFrame):
        content.write_parquet(tmp_path / name)
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DamagedError, match=f"more {name.partition('.')[0]} than one can have"):
        read_source(tmp_path / name)


def test_a_table_of_another_sort_or_none_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a sort that is not read"):
        read_source(tmp_path / "table.xlsx")
    with pytest.raises(IncompleteError):
        read_source(tmp_path / "table.csv")


def test_more_episodes_of_a_task_than_can_be_numbered_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match="more episodes in one evaluation"):
        tables(tmp_path, [ROWS[0]] * (2**15 + 1))


def lines(tmp_path: Path, *documents: str) -> Path:
    path = tmp_path / "table.jsonl"
    path.write_text("\n".join(documents) + "\n", encoding="utf-8")
    return path


def test_numbers_of_json_stay_as_they_are_written(tmp_path: Path) -> None:
    path = lines(tmp_path, '{"q": 9007199254740993, "t": true}', '{"q": 1.5}', '{"q": "ä", "t": null}')
    read = read_source(path)
    assert read["q"].to_list() == ["9007199254740993", "1.5", "ä"]
    assert read["t"].to_list() == ["true", None, None]


def test_lists_in_json_lines_are_left_out_for_a_reader_and_refused_elsewhere(tmp_path: Path) -> None:
    path = lines(tmp_path, '\ufeff{"a": 1, "b": [1]}', '{"a": 2, "b": 5, "c": {"d": 1}}')
    left_out: set[str] = set()
    assert read_source(path, left_out).drop(ROW).to_dict(as_series=False) == {"a": ["1", "2"]}
    assert left_out == {"b", "c"}
    with pytest.raises(DamagedError, match="not a readable table"):
        read_source(path)


_ROWS = [{"a": 9007199254740993, "b": [1], "c": float("nan")}, {"a": 1.50, "b": 2, "c": None}]
_SPLIT = {"columns": ["a", "b", "c"], "data": [list(row.values()) for row in _ROWS]}
_TEXT = json.dumps(_ROWS)
ONE_DOCUMENT: dict[str, str | bytes] = {
    "records": _TEXT,
    "indented": json.dumps(_ROWS, indent=2),
    "marked": b"\xef\xbb\xbf" + _TEXT.encode(),
    "split": json.dumps({"index": [0, 1], **_SPLIT}),
    "table": json.dumps({"schema": {"fields": []}, "data": _ROWS}),
    "columns": json.dumps({name: {str(n): row[name] for n, row in enumerate(_ROWS)} for name in "abc"}),
    "lines": "\n".join(map(json.dumps, _ROWS)),
    "packed": gzip.compress(_TEXT.encode()),
}


@pytest.mark.parametrize("layout", ONE_DOCUMENT)
def test_one_json_document_is_read_as_json_lines_are(layout: str, tmp_path: Path) -> None:
    path, text = tmp_path / ("x.json.gz" if layout == "packed" else "x.json"), ONE_DOCUMENT[layout]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    log = read_log([path])
    assert log.table.drop(ROW).to_dict(as_series=False) == {
        "a": ["9007199254740993", "1.5"],
        "c": ["nan", None],
    }
    assert log.left_out == ("b",)


NO_TABLE = {
    "cut off": (_TEXT[:-2], "Expecting"),
    "of results": (json.dumps({"gpt": {"acc": 1}, "llama": {"acc": 0}}), "one object, of gpt, llama"),
    "of one value": ("3", "the document is no JSON object"),
    "of lists": ("[[1, 2]]", "row 1 is no JSON object"),
    "mixed": ('[{"a": 1}, 2]', "row 2 is no JSON object"),
    "with a value too few": ('{"columns": ["a", "b"], "data": [[1]]}', "each of 2 columns"),
    "with a column twice": ('{"columns": ["a", "a"], "data": [[1, 2]]}', "a"),
    "with a key twice": ('[{"a": 1, "a": 2}]', "row 1 has a name twice"),
    "with half a surrogate": ('[{"a": "\\ud800"}]', "surrogates not allowed"),
    "too deep": ("[" * 100_000, "recursion"),
    "in UTF-16": (_TEXT.encode("utf-16"), "invalid start byte"),
    "without rows": ("[]", None),
    "with two lists": (_TEXT + _TEXT, "Extra data"),
}


@pytest.mark.parametrize("defect", NO_TABLE)
def test_a_json_document_that_is_no_table_says_what_is_expected(defect: str, tmp_path: Path) -> None:
    text, found = NO_TABLE[defect]
    (tmp_path / "x.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DamagedError) as refused:
        read_log([tmp_path / "x.json"])
    assert (refused.value.found is None) if found is None else (found in str(refused.value.found))
    assert refused.value.where


def test_a_json_document_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.json").write_text(_TEXT)
    monkeypatch.setattr(module, "_LARGEST_WHOLE", len(_TEXT) - 1)
    with pytest.raises(DamagedError, match="more bytes in one JSON document than"):
        read_log([tmp_path / "x.json"])


def test_a_folder_with_tables_has_other_json_too_and_a_list_of_json_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"seed": 1}')
    (tmp_path / "rows.json").write_text(_TEXT)
    assert read_log([tmp_path]).files == (tmp_path / "rows.json",)
    (tmp_path / "rows.csv").write_text("a\n1\n")
    assert read_log([tmp_path]).files == (tmp_path / "rows.csv",)


def test_a_history_may_be_one_json_document(tmp_path: Path) -> None:
    (tmp_path / "history.json").write_text('[{"step": 0, "reward": 1}, {"step": 1, "reward": 2}]')
    assert read_log([tmp_path / "history.json"]).is_history


DAMAGED_MAPPINGS = [
    ("language = 1\n", "language =\n", "is not TOML"),
    ("language = 1", "language = 2", r"`\$.language`"),
    ("language = 1\n", "", "`language`"),
    ('study = "mine"', 'study = "../mine"', r"`\$.study`"),
    ('registration = "mine"\n', "", "`registration`"),
    ("[columns]", "speed = 3\n[columns]", "unknown field `speed`"),
    ('arm = "agent"', 'arm = "agent"\ncolour = "red"', "do not take from a table.*: colour"),
    ('arm = "agent"', 'arm = "agent"\nepisodes = "n"', "do not take from a table.*: episodes"),
    ('role = "primary"', 'role = "primary"\narm = "one"', "constants, too: arm"),
    ('task = "problem"\n', "", "what registers need.*: task"),
    ("step = 0\n", "", "what registers need.*: step"),
    ('true_success = "solved"\n', "", "what registers need.*: true_success"),
    ("[values.arm]", "[values.pool]", "not mapped: pool"),
    ("[values.arm]", '[attributes]\nrole = "x"\n[values.arm]', "name of a column: role"),
    ('arm = "agent"', 'arm = ["agent"]', r"`\$.columns"),
    ("step = 0", "step = 0.5", r"`\$.constants"),
    ('arm = "agent"', 'arm = ""', r"`\$.columns"),
    ("[values.arm]\n", "[values]\narm = 3\n", r"`\$.values"),
]


def test_a_mapping_is_read_as_it_stands() -> None:
    mapping = parse_mapping(MAPPING)
    assert (mapping.study, mapping.registration) == ("mine", "mine")
    assert mapping.columns == {"arm": "agent", "seed": "rng", "task": "problem", "true_success": "solved"}
    assert mapping.constants["step"] == "0"
    assert mapping.values == {"arm": {"A-1": "one"}}


@pytest.mark.parametrize(("old", "new", "says"), DAMAGED_MAPPINGS)
def test_a_damaged_mapping_is_refused_with_its_file(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert MAPPING.count(old) == 1
    (tmp_path / "mine.toml").write_text(MAPPING.replace(old, new))
    with pytest.raises(DamagedError) as raised:
        read_mapping(tmp_path / "mine.toml")
    assert re.search(says, str(raised.value.found if "TOML" not in says else raised.value))
    assert raised.value.where == str(tmp_path / "mine.toml")


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
GOOD = {
    "a_number_in_text": (Type.INT16, ["7", " 8 ", "-9"], [7, 8, -9]),
    "a_number_with_a_gap_elsewhere": (Type.INT16, ["3.0", "4.000"], [3, 4]),
    "numbers_of_parquet": (Type.INT16, [1.0, 2.0], [1, 2]),
    "the_largest_seed": (Type.UINT64, ["18446744073709551615"], [2**64 - 1]),
    "truths_in_words": (Type.BOOL, ["True", "FALSE", " true"], [True, False, True]),
    "truths_in_numbers": (Type.BOOL, [1, 0], [True, False]),
    "truths_in_fractions": (Type.BOOL, [1.0, 0.0], [True, False]),
    "truths_of_a_survey": (Type.BOOL, ["yes", "No"], [True, False]),
    "truths": (Type.BOOL, [True, False], [True, False]),
    "a_decimal": (Type.DECIMAL, ["0.25", "999.999999"], [Decimal("0.250000"), Decimal("999.999999")]),
    "a_double": (Type.FLOAT64, ["1e-3", "2"], [0.001, 2.0]),
    "a_time_elsewhere": (Type.TIMESTAMP, ["2026-01-31T14:00:00+02:00"], [NOON]),
    "a_time_in_utc": (Type.TIMESTAMP, ["2026-01-31T12:00:00Z"], [NOON]),
    "a_time_of_parquet": (Type.TIMESTAMP, [NOON], [NOON]),
    "text_of_a_number": (Type.STRING, [17], ["17"]),
}
BAD = {
    "a_fraction": (Type.INT16, "1.5"),
    "too_large": (Type.INT16, "32768"),
    "too_small": (Type.INT16, "-32769"),
    "a_word_for_a_number": (Type.INT16, "seven"),
    "an_underscore": (Type.INT16, "1_000"),
    "a_negative_seed": (Type.UINT64, "-1"),
    "a_seed_beyond_64_bits": (Type.UINT64, "18446744073709551616"),
    "a_maybe": (Type.BOOL, "maybe"),
    "a_two": (Type.BOOL, "2"),
    "half_a_success": (Type.BOOL, "0.5"),
    "seven_digits": (Type.DECIMAL, "0.1234567"),
    "a_thousand": (Type.DECIMAL, "1000"),
    "an_exponent": (Type.DECIMAL, "1e-1"),
    "not_a_number": (Type.FLOAT64, "nan"),
    "infinity": (Type.FLOAT64, "inf"),
    "a_time_without_zone": (Type.TIMESTAMP, "2026-01-31T12:00:00"),
    "a_day_that_is_none": (Type.TIMESTAMP, "2026-02-31T12:00:00Z"),
    "a_time_in_words": (Type.TIMESTAMP, "noon"),
    "a_day_whose_year_looks_like_a_zone": (Type.TIMESTAMP, "12-11-2026"),
    "a_day_without_a_clock": (Type.TIMESTAMP, "2026-01-31+02:00"),
}


def cells(values: list[object]) -> pl.DataFrame:
    return pl.DataFrame({"theirs": values}).with_row_index(ROW, offset=1)


@pytest.mark.parametrize("case", GOOD)
def test_a_value_is_converted_exactly(case: str) -> None:
    kind, given, expected = GOOD[case]
    values = converted(cells(list(given)), Column("ours", "", kind), "theirs", {})
    assert values.to_list() == expected
    assert values.name == "ours"


@pytest.mark.parametrize("case", BAD)
def test_a_value_of_another_sort_is_refused_with_its_row(case: str) -> None:
    kind, wrong = BAD[case]
    good = str(GOOD[next(name for name, (k, _, _) in GOOD.items() if k is kind)][1][0])
    with pytest.raises(DamagedError, match="cannot have") as raised:
        converted(cells([good, wrong, good, wrong]), Column("ours", "", kind), "theirs", {})
    assert raised.value.found == f"{wrong!r} in row 2, and in 1 more"


def test_a_gap_is_refused_where_a_value_is_needed() -> None:
    with pytest.raises(DamagedError, match="has no value for ours") as raised:
        converted(cells(["1", None]), Column("ours", "", Type.INT16), "theirs", {})
    assert raised.value.found == "nothing in row 2"
    column = Column("ours", "", Type.INT16, nullable=True)
    assert converted(cells(["1", None]), column, "theirs", {}).to_list() == [1, None]


def test_words_are_translated_before_they_are_read() -> None:
    words = {"won": "true", "lost": "false"}
    values = converted(cells(["won", "lost", "true"]), Column("ours", "", Type.BOOL), "theirs", words)
    assert values.to_list() == [True, False, True]
