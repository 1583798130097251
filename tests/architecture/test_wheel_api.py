"""From the built package, in an empty folder: the Python interface, its types, and the notebook."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.architecture.test_wheel import wheel  # noqa: F401 - a fixture
from tests.conftest import CHECKOUT
from toolkit import estimators

PROGRAM = """\
import toolkit
from toolkit import estimators

study = toolkit.open_study("published")
reveal_type(study)
reveal_type(study.rows("runs"))
reveal_type(study.polars("runs"))
reveal_type(study.pandas("runs"))
reveal_type(study.relation("runs"))
reveal_type(study.plot("H2a"))
reveal_type(toolkit.studies())
reveal_type(toolkit.decide("H2a", study))
reveal_type(toolkit.decide_all())
reveal_type(toolkit.explain("H2a"))
reveal_type(toolkit.explain("H2a").endpoints)
reveal_type(toolkit.verify("paired-rollouts"))
reveal_type(toolkit.verify("paired-rollouts").existed_by)
reveal_type(toolkit.freeze("mine", demonstration=True))
reveal_type(toolkit.import_table("mine", "log.csv"))
reveal_type(toolkit.decide("H2a").estimate)
reveal_type(toolkit.estimators.t_interval([0.1, 0.2, 0.3]))
reveal_type(estimators.luck_share([[0, 1], [1, 0]]).share)
"""
REVEALED = [
    "Study",
    "list[dict[str, Any]]",
    "LazyFrame",
    "DataFrame",
    "DuckDBPyRelation",
    "LayerChart",
    "tuple[str, ...]",
    "Decision",
    "tuple[Decision, ...]",
    "Explanation",
    "tuple[EndpointRows, ...]",
    "Verification",
    "datetime | None",
    "Frozen",
    "Study",
    "Estimate | None",
    "tuple[float, float]",
    "float | None",
]
# What only extras bring is not installed where somebody checks a program against the core.
OPTIONS = """\
[mypy]
strict = True
[mypy-torch.*,transformers.*,peft.*,trl.*,accelerate.*,datasets.*,vllm.*,ray.*,huggingface_hub.*,mcp.*,scipy.*]
follow_imports = skip
"""


@pytest.fixture
def empty(wheel: Path, tmp_path: Path) -> Path:  # noqa: F811 - the fixture above
    """Return an empty folder beside an environment in which the package is installed, `bin/python`."""
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = environment / "lib" / version / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # What the package needs is this environment's; its own files come first.
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    return tmp_path / "empty"


def python(empty: Path, *arguments: object) -> str:
    """Run the environment's Python in the empty folder, and return what it says."""
    without = {
        name: value for name, value in os.environ.items() if name not in {"TOOLKIT_HOME", "PYTHONPATH"}
    }
    command = [str(empty.parent / "environment/bin/python"), *map(str, arguments)]
    done = subprocess.run(command, cwd=empty, env=without, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_decides_and_explains_from_an_empty_folder(empty: Path) -> None:
    program = (
        "import toolkit; print(toolkit.__file__); print(toolkit.decide('H2a').verdict);"
        "print(toolkit.explain('H2a').endpoints[0].id); print(toolkit.verify('paired-rollouts').verdict)"
    )
    place, *said = python(empty, "-c", program).split()
    assert "environment" in place
    assert said == ["miss", "c2_auc", "incomplete"]


def test_the_notebooks_first_half_runs_from_an_empty_folder_with_the_core_alone(empty: Path) -> None:
    notebook = CHECKOUT / "examples/notebook/learning_curves.ipynb"
    said = python(empty, "-P", CHECKOUT / "tests/notebook.py", notebook, 7)
    assert "mean 71/1920 = 0.03698" in said
    assert re.findall(r"^(\d) ", said, re.MULTILINE) == ["2", "3", "4", "5", "6"]


@pytest.mark.slow
def test_an_installed_package_shows_the_types_of_what_is_public_and_of_every_estimator(empty: Path) -> None:
    each = "".join(f"reveal_type(estimators.{name})\n" for name in estimators.__all__)
    (empty / "program.py").write_text(PROGRAM + each, encoding="utf-8")
    (empty / "mypy.ini").write_text(OPTIONS, encoding="utf-8")
    interpreter = str(empty.parent / "environment/bin/python")
    command = [sys.executable, "-m", "mypy", "--python-executable", interpreter, "program.py"]
    done = subprocess.run(command, cwd=empty, capture_output=True, text=True, check=False)
    assert "Success" in done.stdout, done.stdout
    types = re.findall(r'Revealed type is "(.*)"', done.stdout)
    public, signatures = types[: len(REVEALED)], types[len(REVEALED) :]
    assert [re.sub(r"(\w+\.)+", "", shown.partition(", {")[0]) for shown in public] == REVEALED
    for name, signature in zip(estimators.__all__, signatures, strict=True):
        takes, _, gives = signature.rpartition(") -> ")
        # An array of any shape is numpy's `tuple[Any, ...]`.
        assert "Any" not in gives.replace("tuple[Any, ...]", ""), name
        assert not re.search(r": Any\b", takes), name
