"""The script of the worked example with logs of lm-evaluation-harness, where that is installed."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.own_study import EXAMPLES, asked, shell
from tests.unit.stack import require_lm_eval

EXAMPLE = EXAMPLES / "benchmark"


def samples(folder: Path, model: str) -> list[dict[str, Any]]:
    """Return what was logged of a model, question by question."""
    (path,) = (folder / f"lab__{model}").glob("samples_capitals_*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_script_writes_the_pilot_again(tmp_path: Path) -> None:
    require_lm_eval()
    programs = Path(sys.executable).parent
    done = shell(tmp_path, f'PATH="{programs}:$PATH" sh "{EXAMPLE}/run.sh" "{EXAMPLE}/pilot.jsonl" again')
    assert done.returncode == 0, (done.stdout, done.stderr)
    for model in ("narrow", "wide"):
        again, kept = samples(tmp_path / "again", model), samples(EXAMPLE / "pilot", model)
        assert [one.keys() for one in again] == [one.keys() for one in kept]
        assert [one["doc"] for one in again] == [one["doc"] for one in kept]
        assert [one["acc"] for one in again] == [one["acc"] for one in kept]
    assert all(
        json.loads(path.read_text(encoding="utf-8"))["pretty_env_info"] == ""
        for path in (tmp_path / "again").rglob("results_*.json")
    )
    read = asked(tmp_path, "new-study mine --table again --into .")
    kept_columns = asked(tmp_path, f'new-study kept --table "{EXAMPLE}/pilot" --into .')["columns"]
    assert read["columns"] == kept_columns
