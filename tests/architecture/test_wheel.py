"""The built package carries the shipped study and decides it from anywhere."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

import toolkit
from tests.conftest import CHECKOUT, snapshot
from toolkit.places import SEPARATE

MB = 10**6
DISTRIBUTIONS = sorted((CHECKOUT / "registers/.distributions").iterdir())
Run = Callable[..., subprocess.CompletedProcess[str]]


def built(folder: Path, target: str, into: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(into)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (made,) = into.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(CHECKOUT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    shutil.unpack_archive(built(CHECKOUT, "sdist", folder / "built"), folder / "unpacked", "gztar")
    (unpacked,) = (folder / "unpacked").iterdir()
    return unpacked


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_package_registers_and_registration_and_no_tests(wheel: Path) -> None:
    names = names_in(wheel)
    for name in (
        "toolkit/py.typed",
        "toolkit/site/templates/home.html",
        "toolkit/site/assets/style.css",
        "toolkit/site/assets/site.js",
        "toolkit/site/assets/charts.css",
        "toolkit/site/exhibits/templates/theory.html",
        "toolkit/site/exhibits/assets/theory.js",
        "toolkit/_shipped/prereg/paired-rollouts/rules.toml",
        "toolkit/_shipped/prereg/embedded/rules.toml",
        "toolkit/_shipped/registers/published/MANIFEST.json",
        "toolkit/_shipped/cards/published.md",
    ):
        assert name in names
    assert not [name for name in names if name.startswith("tests/") or "/browser/" in name]
    assert not [name for name in names if "node_modules" in name]


def test_the_wheel_is_below_six_megabytes(wheel: Path) -> None:
    assert wheel.stat().st_size < 6 * MB


def test_every_study_is_in_exactly_one_distribution(wheel: Path) -> None:
    registers = "toolkit/_shipped/registers"
    core = {name.split("/")[3] for name in names_in(wheel) if name.startswith(registers)}
    others = []
    for folder in DISTRIBUTIONS:
        targets = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
        files = targets["build"]["targets"]["wheel"]["force-include"]
        assert all(where == f"{registers}/{Path(source).name}" for source, where in files.items())
        assert all((folder / source).is_dir() for source in files)
        others += [Path(source).name for source in files]
        size = sum(path.stat().st_size for s in files for path in (folder / s).rglob("*") if path.is_file())
        assert size < 100 * 2**20, f"{folder.name}: more than an index takes of one file"
    assert core == {"published"}
    assert sorted(others) == list(SEPARATE)
    shipped = {path.name for path in (CHECKOUT / "registers").iterdir() if not path.name.startswith(".")}
    assert core.union(others) == shipped


def test_the_studies_are_of_the_packages_version() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = []
    for folder in DISTRIBUTIONS:
        other = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert other["version"] == project["version"]
        assert other["dependencies"] == [f"{project['name']}=={project['version']}"]
        needed.append(f"{other['name']}=={other['version']}")
    assert project["optional-dependencies"]["studies"] == needed


@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_adopted_evidence_is_its_authors_and_is_shipped_with_nothing(tmp_path: Path, target: str) -> None:
    names = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "toolkit/__init__.py")
    shipped = ("cards/published.md", "registers/published/MANIFEST.json", "prereg/paired-rollouts/rules.toml")
    for name in (*names, *shipped):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, tmp_path / name)
    evidence = tmp_path / "prereg/paired-rollouts/evidence"
    evidence.mkdir()
    (evidence / "document").write_bytes(b"its authors' words")
    made = built(tmp_path, target, tmp_path / "built")
    shutil.unpack_archive(made, tmp_path / "unpacked", "zip" if target == "wheel" else "gztar")
    there = {path.name for path in (tmp_path / "unpacked").rglob("*") if path.is_file()}
    assert ("rules.toml" in there, "document" in there) == (True, False)


def test_the_sources_hold_the_browsers_code_the_examples_and_nothing_that_npm_fetched(sources: Path) -> None:
    for name in ("package-lock.json", "tsconfig.json", ".npmrc", "src/site.ts"):
        assert (sources / "toolkit/site/browser" / name).is_file()
    for name in ("CITATION.cff", "Makefile", "examples/pairing/plain.py", "tests/conftest.py"):
        assert (sources / name).is_file()
    assert (sources / "toolkit/site/exhibits/browser/theory.ts").is_file()
    assert not list(sources.rglob("node_modules"))


def test_the_sources_build_the_same_wheel(wheel: Path, sources: Path, tmp_path: Path) -> None:
    assert built(sources, "wheel", tmp_path).read_bytes() == wheel.read_bytes()


def test_the_package_index_is_shown_no_link_that_leads_nowhere(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        description = archive.read(metadata).decode("utf-8").partition("\n\n")[2]
    tokens = MarkdownIt().enable("table").parse(description)
    inline = [child for token in tokens for child in token.children or ()]
    targets = [str(part.attrs.get("href") or part.attrs.get("src")) for part in inline if part.attrs]
    assert [target for target in targets if not target.startswith("https://")] == []
    assert "<img" not in description
    assert description.startswith("# toolkit")
    assert "CONTRIBUTING.md" in description


def test_the_citation_names_this_version_and_the_paper() -> None:
    citation = yaml.safe_load((CHECKOUT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == toolkit.__version__
    (paper,) = citation["references"]
    card = (CHECKOUT / "cards/published.md").read_text(encoding="utf-8")
    assert f"title  = {{{paper['title']}}}" in card
    assert f"url    = {{{paper['repository-code']}}}" in card


def unpack(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site-packages")


@pytest.fixture
def python(wheel: Path, tmp_path: Path) -> Run:
    """Return what runs Python in an empty folder, with the package as it was installed."""
    unpack(wheel, tmp_path)
    (tmp_path / "empty").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site-packages")}
    environment.pop("TOOLKIT_HOME", None)

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(
            command, cwd=tmp_path / "empty", env=environment, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def installed(python: Run) -> Run:
    """Return what runs its commands there."""
    return partial(python, "-m", "toolkit")


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


@pytest.mark.slow
def test_an_installed_package_shows_the_types_of_what_is_public_and_of_every_estimator(
    wheel: Path, tmp_path: Path
) -> None:
    each = "".join(f"reveal_type(estimators.{name})\n" for name in toolkit.estimators.__all__)
    venv.create(tmp_path / "environment", symlinks=True)
    (packages,) = (tmp_path / "environment" / "lib").glob("*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # What the package needs is this environment's; its own files come first.
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM + each, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(OPTIONS, encoding="utf-8")
    interpreter = str(tmp_path / "environment/bin/python")
    command = [sys.executable, "-m", "mypy", "--python-executable", interpreter, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Success" in done.stdout, done.stdout
    types = re.findall(r'Revealed type is "(.*)"', done.stdout)
    public, signatures = types[: len(REVEALED)], types[len(REVEALED) :]
    assert [re.sub(r"(\w+\.)+", "", shown.partition(", {")[0]) for shown in public] == REVEALED
    for name, signature in zip(toolkit.estimators.__all__, signatures, strict=True):
        takes, _, gives = signature.rpartition(") -> ")
        # An array of any shape is numpy's `tuple[Any, ...]`.
        assert "Any" not in gives.replace("tuple[Any, ...]", ""), name
        assert not re.search(r": Any\b", takes), name


def test_a_program_decides_and_explains_from_an_empty_folder(python: Run) -> None:
    program = (
        "import toolkit; print(toolkit.__file__); print(toolkit.decide('H2a').verdict);"
        "print(toolkit.explain('H2a').endpoints[0].id); print(toolkit.verify('paired-rollouts').verdict)"
    )
    place, *said = python("-c", program).stdout.split()
    assert "site-packages" in place
    assert said == ["miss", "c2_auc", "incomplete"]


def test_the_notebooks_first_half_runs_from_an_empty_folder_with_the_core_alone(python: Run) -> None:
    notebook = CHECKOUT / "examples/notebook/learning_curves.ipynb"
    said = python("-P", CHECKOUT / "tests/notebook.py", notebook, 7).stdout
    assert "mean 71/1920 = 0.03698" in said
    assert re.findall(r"^(\d) ", said, re.MULTILINE) == ["2", "3", "4", "5", "6"]


def test_an_installed_package_decides_verifies_and_asks_from_an_empty_folder(installed: Run) -> None:
    assert json.loads(installed("decide", "H2a", "--json").stdout)[0]["verdict"] == "miss"
    (verified,) = json.loads(installed("verify-prereg", "embedded", "--json").stdout)
    assert verified["verdict"] == "verified"
    asked = installed("sql", "SELECT count(*) AS n FROM runs", "--json")
    assert json.loads(asked.stdout) == [{"n": 15}]
    assert "_shipped" in installed("registers", "list", "--study", "published", "--json").stdout


@pytest.mark.parametrize(
    ("command", "study"),
    [
        ("decide H2a --study embedded", "embedded"),
        ("decide E1", "embedded"),
        ("explain D1", "coupled"),
        ("sql SELECT --study tiny-lm", "tiny-lm"),
        ("registers diff published map", "map"),
        ("registers verify --study bfcl", "bfcl"),
        ("probe report", "embedded"),
        ("export small-lm --as in-toto", "small-lm"),
        ("study run embedded --run c0-clean-s0 --check", "embedded"),
    ],
)
def test_who_asks_for_a_study_that_is_not_in_the_wheel_is_told_where_it_is(installed, command, study) -> None:
    done = installed(*command.split(), "--json")
    error = json.loads(done.stdout)["error"]
    assert done.returncode == error["exit_code"] == 3
    assert f"{study!r}" in error["problem"]
    assert error["problem"].endswith("does not come with the package")
    for way in ("paired-rollouts-toolkit[studies]", "TOOLKIT_HOME", f"OWNER/{study}@"):
        assert way in error["remedy"]


@pytest.mark.parametrize("command", ["decide --all", "registers list", "verify-prereg"])
def test_what_a_command_leaves_out_for_want_of_studies_it_says(installed: Run, command: str) -> None:
    said = " ".join(installed(*command.split()).stderr.split())
    assert ", ".join(SEPARATE) in said
    assert "paired-rollouts-toolkit[studies]" in said


def test_a_distribution_of_studies_puts_them_where_the_package_looks(installed, tmp_path, wheel) -> None:
    folder = CHECKOUT / "registers/.distributions/language-model-studies"
    studies = built(folder, "wheel", tmp_path / "built")
    assert not names_in(studies) & names_in(wheel)
    unpack(studies, tmp_path)
    done = installed("registers", "list", "--json")
    assert [study["study"] for study in json.loads(done.stdout)] == ["published", "small-lm", "tiny-lm"]
    assert "not with the package: bfcl, coupled, embedded, map, task-pools, worlds." in done.stderr


@pytest.mark.slow
def test_an_installed_package_builds_the_site_and_leaves_itself_alone(installed: Run, tmp_path: Path) -> None:
    before = snapshot(tmp_path / "site-packages" / "toolkit" / "_shipped")
    assert installed("registers", "build", "published").returncode == 2
    assert installed("site", "build").returncode == 0
    assert (tmp_path / "empty" / "site" / "index.html").is_file()
    assert installed("site", "check").returncode == 0
    assert snapshot(tmp_path / "site-packages" / "toolkit" / "_shipped") == before
