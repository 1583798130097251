"""What transcripts cannot show of the commands: others at work, what is not installed, an interrupt."""

import io
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Result, Toolkit, snapshot
from tests.small_home import small_home
from tests.unit.lab.study import fake_play
from toolkit.errors import UsageError
from toolkit.files import hold
from toolkit.lab.play import training_jobs
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.training.recipe import Recipe, load_recipe
from toolkit.places import Home

RUN, OTHER = "c4-paired-none-s0", "c4-independent-none-s0"
DRY = ("train", "--recipe", "qwen3.5-2b", "--dry-run")
SERVE = ("backoffice", "mcp", "--task", "validation:0")
served = pytest.mark.skipif(find_spec("mcp") is None, reason="the package mcp is not installed")


def test_an_interrupt_leaves_the_episode_as_it_is(toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(io.StringIO):
        def readline(self, *size: int) -> str:
            line = super().readline(*size)
            if not line:
                raise KeyboardInterrupt
            return line

    monkeypatch.setattr("sys.stdin", Interrupted("get_order order_id=O-1\n"))
    done = toolkit("episode", "play", "--by-hand", "--task", "validation:0", "--json")
    assert (done.code, done.json()["ended"], len(done.json()["calls"])) == (0, "stopped", 1)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return small_home(tmp_path, monkeypatch)


def run(toolkit: Toolkit, *arguments: object) -> Result:
    return toolkit("study", "run", "small", "--processes", 1, *arguments)


def test_while_a_command_is_at_work_on_a_run_others_are_played(toolkit: Toolkit, small: Home) -> None:
    with Workplace(small.root / "runs" / "small").held([fake_play.specification(RUN)]):
        document = toolkit("study", "status", "small", "--json").json()
        assert document["at_work"] is True
        assert [entry["run_id"] for entry in document["runs"] if entry["at_work"]] == [RUN]
        assert "a command is at work on 1" in toolkit("study", "status", "small").out
        run(toolkit, "--run", RUN).refused(2, f"another command is at work on the run {RUN}")
        run(toolkit, "--into", small.root / "out").refused(2)
        assert snapshot(small.root / "out") == {}
        assert run(toolkit, "--run", OTHER, "--json").json()["completed"] == [OTHER]


def test_two_commands_that_write_the_same_registers_are_refused(toolkit: Toolkit, small: Home) -> None:
    into = small.root / "out"
    into.mkdir()
    with hold(into, ".small.lock", "study's registers"):
        run(toolkit, "--run", RUN, "--into", into).refused(2, "at work on the study's registers")
    assert (small.root / "runs" / "small" / RUN / "COMPLETE.json").is_file()


def test_a_register_that_lacks_a_pool_is_told(toolkit, small, monkeypatch) -> None:
    shutil.copytree(CHECKOUT / "registers" / "task-pools", small.registers / "task-pools")
    monkeypatch.setattr("toolkit.lab.task_pools.STUDY_POOLS", ("diagnostic", "another"))
    run(toolkit, "--run", RUN).refused(3, "lacks another")


def test_a_missing_package_is_named_with_its_remedy(toolkit, monkeypatch, tmp_path) -> None:
    for module in ("mcp", "mcp.server", "mcp.server.lowlevel"):
        monkeypatch.setitem(sys.modules, module, None)
    result = toolkit(*SERVE, "--record", tmp_path / "episode.json", "--json").refused(3)
    assert "pip install 'paired-rollouts-toolkit[mcp]'" in result.json()["error"]["remedy"]
    assert not (tmp_path / "episode.json").exists()


@served
@pytest.mark.parametrize("stdin", [None, io.StringIO("")], ids=["closed", "empty"])
def test_serving_nobody_ends_by_itself_and_a_link_to_a_record_is_followed(
    toolkit, monkeypatch, tmp_path, stdin
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    (tmp_path / "real.json").write_text("")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    result = toolkit(*SERVE, "--regime", "challenge", "--record", tmp_path / "link.json")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["regime"] == "challenge"


def test_the_measured_time_of_a_run_lies_in_the_range_planned_for_it(toolkit, published) -> None:
    planned = toolkit(*DRY, "--json").json()["runs"]
    hours = {(each["condition"], each["arm"], each["seed"]): each["hours"] for each in planned}
    for row in published.rows("runs"):
        if row["accelerator"] == "H100":
            of = hours[row["condition"], row["arm"], row["seed"]]
            assert of["low"] <= row["wall_time_s"] / 3600 <= of["high"] + 1e-3, row["run_id"]


def test_80_columns_hold_every_setting_with_where_it_is_from(toolkit: Toolkit) -> None:
    lines = toolkit(*DRY, "--tier", 1, columns=80).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert ["setting", "value", "where", "from"] in [line.split() for line in lines]


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return what says what is remarked of this machine's packages and GPU, where training is not refused."""

    def checked(recipe: Recipe, packages: Mapping[str, str], *, gpu: bool, cpu: bool = False) -> list[str]:
        remarks: list[str] = []
        monkeypatch.setattr(training_jobs, "installed", packages.get)
        monkeypatch.setattr(training_jobs.loading, "check_importable", lambda _: None)
        training_jobs.check_stack(recipe, cpu=cpu, say=remarks.append, has_gpu=gpu)
        return remarks

    return checked


@pytest.mark.parametrize(
    ("engine", "lacks"),
    [("vllm", "vllm"), ("vllm", "flash-linear-attention"), ("transformers", "flash-linear-attention")],
)
def test_training_without_a_package_is_refused(check, engine: str, lacks: str) -> None:
    recipe = load_recipe("qwen3.5-2b", changes=[f"engine.kind={engine}"])
    there = {name: version for name, version in recipe.packages.items() if name != lacks}
    with pytest.raises(UsageError, match="not installed") as caught:
        check(recipe, there, gpu=True)
    assert ("[gpu]" in str(caught.value.remedy), caught.value.found) == (True, f"without {lacks}")


def test_training_without_a_gpu_is_refused_and_other_versions_are_remarked(check) -> None:
    recipe = load_recipe("qwen3.5-2b")
    there = dict(recipe.packages)
    with pytest.raises(UsageError, match="no GPU"):
        check(recipe, there, gpu=False)
    with pytest.raises(UsageError, match="generates on a GPU"):
        check(recipe, there, gpu=True, cpu=True)
    check(load_recipe("qwen3.5-2b", changes=["engine.kind=transformers"]), there, gpu=False, cpu=True)
    check(recipe, {**there, "vllm": "0.27.1+cpu"}, gpu=False, cpu=True)
    remarks = check(recipe, {**there, "trl": "1.16.0", "torch": "2.13.0+cu130"}, gpu=True)
    assert remarks == ["trl 1.16.0 is installed; the recipe was written for 1.12.0"]
