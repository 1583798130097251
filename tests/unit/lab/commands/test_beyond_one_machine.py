"""The files of `examples/beyond-one-machine`, and what its page says of commands beside each other."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tests.conftest import CHECKOUT, snapshot
from tests.small_home import small_home
from tests.unit.stack import require_ray, require_stack
from toolkit.cli.main import cli

pytestmark = pytest.mark.slow
TEMPLATES = CHECKOUT / "examples" / "beyond-one-machine"
RUNS = ("c4-paired-none-s0", "c4-independent-none-s0")


def template(name: str) -> Any:
    return yaml.safe_load((TEMPLATES / name).read_text(encoding="utf-8"))


def test_commands_work_side_by_side_and_one_assembles_all(toolkit, tmp_path, monkeypatch) -> None:
    """Each on a run of its own; given again, one leaves what is complete as it is."""
    small_home(tmp_path, monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    shared = tmp_path / "shared"

    def begin(run: str) -> subprocess.Popen[bytes]:
        options = ("--run", run, "--folder", shared, "--keep-complete", "--processes", 1)
        command = (sys.executable, "-m", "tests.quick_toolkit", "study", "run", "small", *options)
        return subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL)

    assert [started.wait(60) for started in map(begin, RUNS)] == [0, 0]
    before = snapshot(shared)
    assert begin(RUNS[0]).wait(60) == 0
    assert snapshot(shared) == before
    hashes = []
    for folder in (shared, tmp_path / "alone"):
        options = ("--folder", folder, "--into", tmp_path / f"{folder.name}-registers", "--processes", 1)
        document = toolkit("study", "run", "small", "--run", "c4-*-none-s*", *options, "--json").json()
        hashes.append(document["registers"]["logical_sha256"])
        if folder == shared:
            assert sorted(document["kept"]) == sorted(RUNS)
            assert sorted(document["completed"]) == [f"{run[:-1]}1" for run in sorted(RUNS)]
    assert hashes[0] == hashes[1]


def test_the_accelerate_configuration_is_for_several_gpus() -> None:
    require_stack()
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(TEMPLATES / "accelerate.yaml"))
    assert config.distributed_type.value == "MULTI_GPU"
    assert config.num_processes == 8


@pytest.mark.parametrize(
    "path", [TEMPLATES / "README.md", TEMPLATES / "accelerate.yaml", CHECKOUT / "GUIDE.md"]
)
def test_what_accelerate_launches_is_understood(path: Path) -> None:
    (line,) = re.findall(r"accelerate launch .* -m toolkit train (.*)", path.read_text(encoding="utf-8"))
    command = cli.get_command(click.Context(cli), "train")
    assert command.make_context("train", line.split()).params["runs"] == ("c2-paired-s0",)


def test_the_ray_cluster_is_what_ray_takes() -> None:
    config = template("ray-cluster.yaml")
    assert config["max_workers"] == len(config["provider"]["worker_ips"])
    require_ray()
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(config))
