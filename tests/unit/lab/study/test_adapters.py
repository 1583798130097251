"""Adapters in rows: read back whole, taken from a run's folder, and what is refused."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import DamagedError, IncompleteError
from toolkit.lab.play.rows import fingerprint, read_adapter, with_adapter

NUMBERS = {"layer.2": b"\x01" * 8, "layer.10": b"\x02" * 4}


def file_of(order: list[str], metadata: dict[str, str]) -> bytes:
    """Return a safetensors file as its format says it, tensors lying in an order of one's choice."""
    tensors: dict[str, Any] = {"__metadata__": metadata}
    start = 0
    for name in order:
        end = start + len(NUMBERS[name])
        tensors[name] = {"dtype": "F32", "shape": [(end - start) // 4], "data_offsets": [start, end]}
        start = end
    header = json.dumps(tensors).encode()
    return len(header).to_bytes(8, "little") + header + b"".join(NUMBERS[name] for name in order)


RAW = file_of(["layer.2", "layer.10"], {"format": "pt"})
ROW = {
    "run_id": "x-paired-s0",
    "step": 20,
    "sha256": hashlib.sha256(RAW).hexdigest(),
    "adapter": base64.b64encode(RAW).decode(),
}


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"run_id": "x-paired-s1"}, DamagedError, "belongs to another run"),
        ({"sha256": "0" * 64}, DamagedError, "not the one that was written"),
        ({"adapter": "?"}, DamagedError, "no base64"),
        ({"adapter": None}, IncompleteError, "too large for its row"),
    ],
)
def test_what_is_not_a_row_s_adapter_is_refused(change, error, text) -> None:
    with pytest.raises(error, match=text):
        read_adapter({**ROW, **change}, "x-paired-s0")


def test_a_fingerprint_is_that_of_the_numbers_by_name() -> None:
    expected = hashlib.sha256(NUMBERS["layer.10"] + NUMBERS["layer.2"]).hexdigest()
    assert fingerprint(RAW) == fingerprint(file_of(["layer.10", "layer.2"], {})) == expected


@pytest.mark.parametrize("raw", [b"", b"nothing", RAW[:20]], ids=["empty", "text", "cut"])
def test_what_is_no_safetensors_file_has_no_fingerprint(raw: bytes) -> None:
    with pytest.raises(DamagedError, match="no safetensors file"):
        fingerprint(raw)


def test_an_adapter_too_large_for_its_row_is_taken_from_the_run_s_folder(tmp_path: Path) -> None:
    assert read_adapter(with_adapter(ROW, tmp_path), "x-paired-s0") == RAW
    assert with_adapter({**ROW, "adapter": None}, tmp_path)["adapter"] is None
    (tmp_path / "checkpoint-20").mkdir()
    (tmp_path / "checkpoint-20" / "adapter_model.safetensors").write_bytes(RAW)
    assert read_adapter(with_adapter({**ROW, "adapter": None}, tmp_path), "x-paired-s0") == RAW
