"""The templates of `examples/beyond-one-machine`: what they start works, alone and beside each other."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from huggingface_hub.utils import parse_hf_mount

from tests.conftest import CHECKOUT, Toolkit, snapshot
from tests.small_home import small_home
from tests.unit.stack import require_ray, require_stack
from toolkit.cli.main import cli
from toolkit.places import Home

pytestmark = pytest.mark.slow
TEMPLATES = CHECKOUT / "examples" / "beyond-one-machine"
RUN, OTHER = "c4-paired-none-s0", "c4-independent-none-s0"
INSTALLED = r"pip install --quiet (\S+ \S+)"
SHIMS = {
    "toolkit": f'exec {sys.executable} -m tests.quick_toolkit "$@"',
    "python3": f'case "$*" in "-m pip "*) exit 0;; esac\nexec {sys.executable} "$@"',
    "hf": f"exec {sys.executable} -c 'import json, sys; print(json.dumps(sys.argv[1:]))' \"$@\"",
}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A small home, and its command line where a shell finds it."""
    home = small_home(tmp_path, monkeypatch)
    (tmp_path / "bin").mkdir()
    for name, text in SHIMS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("STUDY", "small")
    monkeypatch.setenv("FOLDER", str(tmp_path / "shared"))
    return home


def template(name: str) -> Any:
    return yaml.safe_load((TEMPLATES / name).read_text(encoding="utf-8"))


def shell(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["bash", *arguments],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> str:
    """Wait for a process, and return what it printed."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


@pytest.fixture
def places(toolkit: Toolkit, small: Home) -> dict[str, str]:
    """The number of each run's task in a job array."""
    document = toolkit("study", "status", "small", "--json").json()
    return {run["run_id"]: str(number) for number, run in enumerate(document["runs"])}


@pytest.mark.parametrize("name", ["slurm.sh", "hf-jobs.sh"])
def test_a_script_is_one(name: str) -> None:
    ended(shell("-n", str(TEMPLATES / name)))
    assert os.access(TEMPLATES / name, os.X_OK)


def test_tasks_of_a_job_array_work_side_by_side_and_one_command_assembles_all(
    toolkit: Toolkit, places: dict[str, str], tmp_path: Path
) -> None:
    script = str(TEMPLATES / "slurm.sh")
    for task in [shell(script, SLURM_ARRAY_TASK_ID=places[run]) for run in (RUN, OTHER)]:
        ended(task)
    hashes = []
    for folder in (tmp_path / "shared", tmp_path / "alone"):
        options = ("--folder", folder, "--into", tmp_path / f"{folder.name}-registers", "--processes", 1)
        document = toolkit("study", "run", "small", "--run", "c4-*-none-s*", *options, "--json").json()
        hashes.append(document["registers"]["logical_sha256"])
        if folder.name == "shared":
            assert sorted(document["kept"]) == sorted((RUN, OTHER))
            assert sorted(document["completed"]) == [f"{run[:-1]}1" for run in sorted((RUN, OTHER))]
    assert hashes[0] == hashes[1]


def test_a_task_that_is_requeued_after_its_end_changes_nothing(
    places: dict[str, str], tmp_path: Path
) -> None:
    script = str(TEMPLATES / "slurm.sh")
    ended(shell(script, SLURM_ARRAY_TASK_ID=places[RUN]))
    before = snapshot(tmp_path / "shared")
    ended(shell(script, SLURM_ARRAY_TASK_ID=places[RUN]))
    assert snapshot(tmp_path / "shared") == before


def test_a_task_without_a_folder_says_so(small: Home) -> None:
    task = shell(str(TEMPLATES / "slurm.sh"), SLURM_ARRAY_TASK_ID="0", FOLDER="")
    assert "a folder that all machines share" in task.communicate(timeout=60)[1]
    assert task.returncode


def test_the_skypilot_task_plays_its_run(small: Home, tmp_path: Path) -> None:
    task = template("skypilot.yaml")
    assert set(task) == {"name", "resources", "workdir", "envs", "file_mounts", "setup", "run"}
    assert 'install --quiet ".${EXTRA:+[$EXTRA]}"' in task["setup"]
    assert task["envs"]["FOLDER"].startswith("".join(task["file_mounts"]))
    ended(shell("-euc", task["setup"] + task["run"], RUN=RUN))
    assert (tmp_path / "shared" / RUN / "COMPLETE.json").is_file()


@pytest.mark.parametrize(
    ("settings", "flavor", "timeout", "installed"),
    [
        ("", "cpu-basic", "1h", "/dist/*.whl"),
        ("FLAVOR=h200 TIMEOUT=24h EXTRA=gpu", "h200", "24h", "/dist/*.whl[gpu]"),
    ],
)
def test_a_hugging_face_job_is_understood_and_plays_its_run(
    small: Home, tmp_path: Path, settings: str, flavor: str, timeout: str, installed: str
) -> None:
    (tmp_path / "dist").mkdir()
    script = f"cd {tmp_path}; {settings} {TEMPLATES / 'hf-jobs.sh'} small me/study {RUN}"
    arguments = json.loads(ended(shell("-c", script)))
    assert arguments[:2] == ["jobs", "run"]
    hf = Path(sys.executable).with_name("hf")
    environment = {**os.environ, "HF_TOKEN": "hf_none", "HF_HUB_OFFLINE": "1"}
    understood = subprocess.run(
        [hf, "jobs", "run", "--dry-run", "--format", "human", *arguments[2:]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert re.search(r"^ *image +python:3\.12$", understood, re.MULTILINE)
    assert re.search(rf"^ *flavor +{flavor}$", understood, re.MULTILINE)
    assert arguments[arguments.index("--timeout") + 1] == timeout
    extra = next(text for text in arguments if text.startswith("EXTRA="))
    echoed = ended(shell("-c", f"{extra}; echo {re.findall(INSTALLED, arguments[-1])[0]}"))
    assert echoed.strip() == installed
    mount = parse_hf_mount(arguments[arguments.index("--volume") + 1])
    assert (mount.source.type, mount.source.id, mount.mount_path) == ("bucket", "me/study", "/study")
    assert "FOLDER=/study/small" in arguments
    ended(shell(*arguments[-2:], RUN=RUN))
    assert (tmp_path / "shared" / RUN / "COMPLETE.json").is_file()


def test_the_accelerate_configuration_is_for_several_gpus() -> None:
    require_stack()
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(TEMPLATES / "accelerate.yaml"))
    assert config.distributed_type.value == "MULTI_GPU"
    assert config.num_processes == 8


@pytest.mark.parametrize("name", ["README.md", "accelerate.yaml"])
def test_what_accelerate_launches_is_understood(name: str) -> None:
    (line,) = re.findall(r"accelerate launch .* -m toolkit train (.*)", (TEMPLATES / name).read_text())
    command = cli.get_command(click.Context(cli), "train")
    assert command.make_context("train", line.split()).params["runs"] == ("c2-paired-s0",)


def test_the_ray_cluster_is_what_ray_takes() -> None:
    config = template("ray-cluster.yaml")
    assert config["max_workers"] == len(config["provider"]["worker_ips"])
    require_ray()
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(config))
