"""The lanes of `.ci/run`: `make test-all` runs each, and a change chooses those that guard it."""

import importlib.util
import re
from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest

from tests.conftest import CHECKOUT


@pytest.fixture(scope="module")
def lanes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lanes", CHECKOUT / ".ci" / "lanes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_make_test_all_runs_every_lane(lanes: ModuleType) -> None:
    makefile = (CHECKOUT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    (whole,) = re.findall(r"^test-all: (.*)$", makefile, re.MULTILINE)
    assert whole.split() == list(lanes.LANES)


def test_what_a_lane_guards_is_there(lanes: ModuleType) -> None:
    prefixes = {prefix for paths in lanes.LANES.values() for prefix in paths}
    assert [prefix for prefix in sorted(prefixes) if not list(CHECKOUT.glob(f"{prefix}*"))] == []


@pytest.mark.parametrize(
    ("name", "lane"),
    [
        ("toolkit/registers/writer.py", "slow-core other-majors"),
        ("toolkit/noise/mcp/proxy.py", "slow-lab openenv verifiers mcp-servers"),
        ("toolkit/site/page.py", "slow-site"),
        ("toolkit/lab/training/language_model/trainer.py", "slow-lab newest-train vllm"),
        ("CHANGELOG.md", ""),
    ],
)
def test_a_change_chooses_its_lanes(lanes: ModuleType, name: str, lane: str) -> None:
    assert " ".join(lane for lane, why in lanes.chosen(["LICENSE", name]).items() if why == name) == lane


def test_everything_runs_where_the_last_whole_test_is_old_unknown_or_of_other_dependencies(
    lanes: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = (CHECKOUT / "pyproject.toml").read_text("utf-8")
    other = here.replace('"rich>=', '"rich>')
    now = datetime.now(UTC)
    said = {"cat-file": "commit\n", "diff": "", "ls-files": "", "show": here}
    monkeypatch.setattr(lanes, "git", lambda word, *_: said[word])
    tested = {"commit": "c" * 40, "date": now.isoformat()}
    assert lanes.why_whole(tested) == ""
    assert "more than 2 days ago" in lanes.why_whole(
        {**tested, "date": (now - timedelta(days=3)).isoformat()}
    )
    said["show"] = other
    assert lanes.why_whole(tested) == "a dependency changed: pyproject.toml"
    said["diff"] = "requirements-dev.lock\n"
    assert lanes.why_whole(tested) == "a dependency changed: requirements-dev.lock"
    said["cat-file"] = ""
    assert "not in this clone" in lanes.why_whole(tested)
