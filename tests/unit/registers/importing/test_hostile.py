"""Whatever a file holds is a log or one clear error, and no library says anything beside it."""

import contextlib
import datetime as dt
import gzip
import json
import random
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption

from tests.conftest import run
from tests.unit.registers.importing.logs import LOGS, refused, study_of
from toolkit.drafting.outline import outlined, scaffold
from toolkit.errors import DamagedError, ToolkitError
from toolkit.registers.columns import Column, Type
from toolkit.registers.importing import source
from toolkit.registers.importing.readers import common
from toolkit.registers.importing.reading import read_log
from toolkit.registers.importing.source import ROW, converted, read_source

NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
ID = UUID("12345678-1234-5678-1234-567812345678")
LEFT_OUT = None
HUGE = 9 * 10**15


def extension(kind: Any, values: list[Any], storage: pa.DataType) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(values, storage))


# Kind → two cells, and what is read of them
KINDS: dict[str, tuple[pa.Array, list[Any] | None]] = {
    "nothing": (pa.nulls(2), [None, None]),
    "half a float": (pa.array([0.5, None], pa.float16()), [0.5, None]),
    "decimal": (pa.array([Decimal("0.50"), None]), [Decimal("0.50"), None]),
    "wide decimal": (pa.array([Decimal("0.50"), None], pa.decimal256(60, 2)), ["0.50", None]),
    "text of words": (pa.array(["a", None]).dictionary_encode(), ["a", None]),
    "numbers as words": (pa.array([7, None]).dictionary_encode(), [7, None]),
    "text as bytes": (pa.array(["é".encode(), None], pa.binary()), ["é", None]),
    "text of one width": (pa.array([b"ab", None], pa.binary(2)), ["ab", None]),
    "bytes": (pa.array([b"\xff", b"a"], pa.binary()), LEFT_OUT),
    "UUID": (extension(pa.uuid(), [ID.bytes, None], pa.binary(16)), [str(ID), None]),
    "JSON": (extension(pa.json_(), ["[1]", None], pa.string()), ["[1]", None]),
    "truth in a byte": (extension(pa.bool8(), [1, None], pa.int8()), [1, None]),
    "of another program": (extension(pa.opaque(pa.binary(), "x", "y"), [b"\xff"] * 2, pa.binary()), LEFT_OUT),
    "day": (pa.array([NOON.date(), None]), ["2026-01-31", None]),
    "clock": (pa.array([NOON.time(), None], pa.time64("us")), ["12:00:00.000000", None]),
    "duration": (pa.array([dt.timedelta(milliseconds=1500), None]), [1.5, None]),
    "time": (pa.array([NOON, None], pa.timestamp("us", "Europe/Berlin")), [NOON, None]),
    "time by offset": (pa.array([NOON, None], pa.timestamp("ns", "+05:30")), [NOON, None]),
    "time of no known zone": (pa.array([NOON, None], pa.timestamp("ms", "Mars/Phobos")), [NOON, None]),
    "time in no zone": (pa.array([NOON.replace(tzinfo=None), None]), [NOON.replace(tzinfo=None), None]),
    "time after all years": (
        pa.array([HUGE, None]).cast(pa.timestamp("s")).cast(pa.timestamp("s", "UTC")),
        ["30191-04-03 2473901162512:00:00Z", None],
    ),
    "list": (pa.array([[1], [2]]), LEFT_OUT),
    "list of views": (pa.array([[1], [2]], pa.list_view(pa.int64())), LEFT_OUT),
    "document": (pa.array([{"a": 1}, None]), LEFT_OUT),
    "map": (pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())), LEFT_OUT),
    "tensor": (
        extension(pa.fixed_shape_tensor(pa.int8(), (1,)), [[1], [2]], pa.list_(pa.int8(), 1)),
        LEFT_OUT,
    ),
    "runs": (pa.RunEndEncodedArray.from_arrays([2], ["a"]), ["a", "a"]),
    "union": (pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]), LEFT_OUT),
    "interval": (pa.array([pa.MonthDayNano([1, 2, 3]), None]), LEFT_OUT),
}
ONLY_IN_ARROW = {"runs", "union", "interval"}


def as_parquet(path: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, path / "log.parquet", **options)
    return path / "log.parquet"


def as_arrow(path: Path, table: pa.Table) -> Path:
    (path / "dataset_info.json").write_text("{}")
    (path / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    with pa.OSFile(str(path / "data.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return path


@pytest.mark.parametrize("write", [as_parquet, as_arrow])
@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_any_kind_is_read_or_left_out_and_named(write, kind, tmp_path, capfd) -> None:
    if write is as_parquet and kind in ONLY_IN_ARROW:
        return
    cells, expected = KINDS[kind]
    log = read_log([write(tmp_path, pa.table({"task": ["a", "b"], "of a kind": cells}))])
    assert log.table["task"].to_list() == ["a", "b"]
    if expected is LEFT_OUT:
        assert ("of a kind" in log.table.columns, log.left_out) == (False, ("of a kind",))
    else:
        read = log.table["of a kind"].to_list()
        said = [value and value.replace(".000Z", "Z") if isinstance(value, str) else value for value in read]
        assert (said, log.left_out) == (expected, ())
    assert capfd.readouterr() == ("", "")


class Keys(encryption.KmsClient):  # type: ignore[misc]
    def __init__(self, _: Any) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, _: str) -> bytes:
        return key


@pytest.mark.parametrize("is_open", [False, True], ids=["all", "columns"])
def test_an_encrypted_table_is_refused_as_such(is_open: bool, tmp_path: Path) -> None:
    wanted = encryption.EncryptionConfiguration(
        footer_key="k", column_keys={"k": ["task"]}, plaintext_footer=is_open, double_wrapping=False
    )
    properties = encryption.CryptoFactory(Keys).file_encryption_properties(
        encryption.KmsConnectionConfig(), wanted
    )
    log = as_parquet(tmp_path, pa.table({"task": ["a"]}), encryption_properties=properties)
    assert "without encryption" in str(refused(log, match="log.parquet is encrypted").remedy)


def test_a_few_bytes_that_stand_for_many_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LARGEST_TABLE", 2**20)
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), pa.array(["x" * 2**10]))
    for write in (as_parquet, as_arrow):
        refused(write(tmp_path, pa.table({"task": words})), match="more bytes than one can have")


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ({"x": pa.array([b"\xff"], pa.binary()).view(pa.string())}, "not a readable table"),
        ({"x": pa.array([[1]])}, "no column of the table has one value a row"),
    ],
    ids=["text that is none", "lists alone"],
)
def test_a_table_of_nothing_readable_is_refused(table: dict[str, Any], match: str, tmp_path: Path) -> None:
    refused(as_parquet(tmp_path, pa.table(table)), match=match)


HEADING, ROWS = "arm,seed,task,score", ("a,0,né,0.5", "b,0,ne\u0301,0.25")
TEXT = "\n".join((HEADING, *ROWS, ""))
SHEETS = {
    "semicolons": (TEXT.replace(",", ";").encode(), "as if its cells were separated by ';'"),
    "tabs": (TEXT.replace(",", "\t").encode(), "as if its cells were separated by '\\\\t'"),
    "UTF-16": (TEXT.encode("utf-16"), "iconv -f UTF-16"),
    "Latin-1": (TEXT.replace("\u0301", "").encode("latin-1"), "LATIN1"),
    "a name twice but for blanks": (TEXT.replace("seed", " arm").encode(), "one name"),
}


@pytest.mark.parametrize("case", SHEETS)
def test_what_spreadsheets_write_otherwise_is_refused_with_the_remedy(case: str, tmp_path: Path) -> None:
    content, said = SHEETS[case]
    (tmp_path / "log.csv").write_bytes(content)
    refused(tmp_path / "log.csv", match=said)


def test_a_task_is_one_however_its_accents_are_written(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(TEXT.replace("task", " task "), encoding="utf-8")
    log = read_log([tmp_path / "log.csv"])
    assert "task" in log.table.columns
    assert study_of(log)["task_pools"]["task_id"].to_list() == ["né"]


def test_a_decimal_comma_is_refused_with_the_remedy() -> None:
    with pytest.raises(DamagedError, match="after a comma"):
        converted(pl.DataFrame({ROW: [1], "x": ["0,5"]}), Column("score", "", Type.FLOAT64), "x", {})


OPTIONS = {
    "one column for two": (("--arm", "x", "--success", "x"), "two options name one column"),
    "attribute of nothing": (("--arm", "arm", "--attribute", "empty"), "does not hold the emptys of a study"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_make_no_study_are_refused(case: str, tmp_path: Path) -> None:
    options, said = OPTIONS[case]
    columns = {"task": [1, 1], "x": [0, 1], "success": [0, 1], "arm": ["a", "b"], "empty": [None, None]}
    log = as_parquet(tmp_path, pa.table(columns))
    run("new-study", "mine", "--table", log, *options, "--into", tmp_path / "project").refused(2, said)


# A value of JSON → what it is, or nothing where both readers refuse it with its line
JSON: dict[bytes, str | float | None] = {
    **{text: float(text) for text in (b"0", b"-0", b"1e2", b"9007199254740993", b"NaN", b"-Infinity")},
    **{b'"%s"' % text.encode(): text for text in ("", " a ", "é", "\x7f", "0.50")},
    b"true": "true",
    b'"\\\\"': "\\",
    b'"\\ud83d\\ude00"': "\N{GRINNING FACE}",
    b'"\\u0000"': "\0",
    **dict.fromkeys((b"[]", b"{}", b'{"a": 1, "a": 2}', b"[[[null]]]"), "left out"),
    **dict.fromkeys((b"[1,]", b'{"a": 1,}', b"-NaN", b"Inf", b"nan", b"[nan]", b"1.", b".5", b"01", b"+1")),
    **dict.fromkeys((b"0x1", b"'a'", b'"a', b'"\t"', b'"\\x"', b"True", b"// a", b"1 2", b"", b"\x00")),
    **dict.fromkeys((b'"\\ud83d"', b'["\\ude00"]', b'"\xff"', b'"\xed\xa0\x80"', b"\xef\xbb\xbf1")),
    b"[" * 100_000: None,
}


@pytest.mark.parametrize("value", JSON, ids=lambda value: repr(value)[:20])
def test_both_readers_of_json_lines_read_the_same(value: bytes, tmp_path: Path) -> None:
    path, expected = tmp_path / "log.jsonl", JSON[value]
    path.write_bytes(b'{"task": 1}\n\n{"task": 2, "x": %s}\n' % value)
    readers = (by_python, lambda file: common.read_json_lines(file, "what it should be"))
    for read in readers:
        if expected is None:
            with pytest.raises(DamagedError, match="line 3"):
                read(path)
            continue
        table, left_out = read(path)
        assert [str(task) for task in table["task"]] == ["1", "2"]
        assert list(left_out) == (["x"] if expected == "left out" else [])
        if isinstance(expected, float):
            assert repr(float(table["x"][1])) == repr(expected) or expected == 0
        elif expected != "left out":
            assert str(table["x"][1]).replace("True", "true") == expected


def by_python(path: Path) -> tuple[Any, set[str]]:
    left_out: set[str] = set()
    return read_source(path, left_out).drop(ROW), left_out


# Damaged variants of real logs.

SMALL = {
    **{name: name for name in ("bfcl", "helm", "swe_bench", "tau2", "tau_bench")},
    "every_eval_ever": "every_eval_ever/lm_eval/sums_direct/lab/tiny-a",
    "hub_dataset": "hub_dataset/saved",
    "hub_parquet": "hub_dataset/repository",
    "lm_eval": "lm_eval/metrics",
    "mlflow": "mlflow/traces",
    "openai_evals": "openai_evals/fuzzy",
    "pairing": "pairing",
    "promptfoo": "promptfoo",
    "trl": "trl/grpo-s0",
    "verl": "verl/grpo-s0",
}
ODD = (
    None,
    float("nan"),
    10**400,
    -1,
    1e308,
    "",
    "\ud800",
    "x\0",
    [],
    {},
    [{"a": [1]}],
    True,
    "2026-13-45",
    "é" * 9,
)


def of_bytes(raw: bytes, draw: random.Random) -> bytes:
    """Return bytes with a damage that needs no understanding of them."""
    at, end = sorted(draw.randrange(len(raw) + 1) for _ in range(2))
    return draw.choice(
        (
            raw[:at],
            raw[at:],
            raw[:at] + raw[end:],
            raw[:at] + bytes(draw.randrange(256) for _ in range(9)) + raw[at:],
            raw[:at] + bytes(len(raw[at:end])) + raw[end:],
            bytes(byte ^ 255 if draw.random() < 0.01 else byte for byte in raw),
            b"",
            raw.decode("latin-1").encode("utf-16"),
            b"\xff\xfe" + raw,
            gzip.compress(raw),
            raw.replace(b"\n", b"\r"),
            raw + raw[at:end],
        )
    )


def of_json(raw: bytes, draw: random.Random) -> bytes:
    """Return JSON, or lines of it, with something in it changed, dropped or there twice."""
    is_lines = raw.count(b"\n}") == 0 and b"\n" in raw.rstrip()
    documents = [json.loads(line) for line in (raw.splitlines() if is_lines else [raw])]
    inner: list[Any] = [draw.choice(documents)]
    while isinstance(inner[-1], dict | list) and inner[-1] and draw.random() < 0.8:
        inner.append(draw.choice([*(inner[-1].values() if isinstance(inner[-1], dict) else inner[-1])]))
    place = next((one for one in reversed(inner) if isinstance(one, dict | list) and one), documents)
    key = draw.choice([*place]) if isinstance(place, dict) else draw.randrange(len(place))
    damage = draw.choice(("odd", "odd", "odd", "drop", "other"))
    if damage == "drop":
        del place[key]
    else:
        other = draw.choice([*(place.values() if isinstance(place, dict) else place)])
        place[key] = draw.choice(ODD) if damage == "odd" else other
    text = "\n".join(json.dumps(one) for one in documents)
    return text.replace('"id"', '"id": 1, "id"', 1).encode() if draw.random() < 0.05 else text.encode()


def damaged(folder: Path, draw: random.Random) -> None:
    """Damage a file of a log."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    file = draw.choice(files)
    raw = file.read_bytes()
    is_text = file.suffix in {".json", ".jsonl"} and draw.random() < 0.7
    if draw.random() < 0.03:
        file.unlink()
    else:
        file.write_bytes((of_json if is_text else of_bytes)(raw, draw))


@pytest.mark.parametrize(
    "seeds", [range(9), pytest.param(range(9, 75), marks=pytest.mark.slow)], ids=["some", "many"]
)
@pytest.mark.parametrize("log", SMALL)
def test_a_damaged_log_is_read_or_refused(log: str, seeds: range, tmp_path: Path, capfd) -> None:
    for seed in seeds:
        folder = shutil.copytree(LOGS / SMALL[log], tmp_path / f"{seed}")
        damaged(folder, random.Random(f"{log} {seed}"))  # noqa: S311 - the same damages every time
        with contextlib.suppress(ToolkitError):
            scaffold(outlined("mine", read_log([folder])), "me/mine")
        shutil.rmtree(folder)
    assert capfd.readouterr() == ("", "")
