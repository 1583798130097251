"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

MODULES = sorted((CHECKOUT / "toolkit").rglob("*.py"))
HEAVY = {"torch", "trl", "vllm", "transformers", "peft", "datasets"}


def test_files_are_short() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path.name: n for path, n in lines.items() if n > 400} == {}


def test_the_core_pulls_nothing_heavy() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = [requirement.split(">")[0].split("=")[0] for requirement in project["dependencies"]]
    assert not HEAVY & set(core)
    locked = (CHECKOUT / "requirements.lock").read_text(encoding="utf-8")
    assert not [name for name in HEAVY if f"\n{name}==" in locked]


def test_the_other_majors_are_the_others() -> None:
    def majors(lock: str) -> dict[str, str]:
        text = (CHECKOUT / lock).read_text(encoding="utf-8")
        return {
            name: text.partition(f"\n{name}==")[2].partition(".")[0] for name in ("duckdb", "huggingface-hub")
        }

    assert majors("requirements-dev.lock") == {"duckdb": "2", "huggingface-hub": "1"}
    assert majors("requirements-other-majors.lock") == {"duckdb": "1", "huggingface-hub": "2"}


@pytest.mark.parametrize(
    "lock",
    [
        "requirements.lock",
        "requirements-dev.lock",
        "requirements-bench.lock",
        "requirements-other-majors.lock",
    ],
)
def test_every_locked_package_has_a_hash_and_no_address(lock: str) -> None:
    text = (CHECKOUT / lock).read_text(encoding="utf-8")
    requirements = text.replace("\\\n", " ").splitlines()
    assert all("--hash=sha256:" in line for line in requirements if line and not line.startswith("#"))
    assert "://" not in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("decide", "H2a"),
        ("decide", "--all", "--json"),
        ("explain", "H2a"),
        ("registers", "verify"),
    ],
    ids=" ".join,
)
def test_everyday_commands_import_nothing_heavy(arguments: tuple[str, ...]) -> None:
    script = (
        "import sys\n"
        f"sys.argv = ['toolkit', *{arguments!r}]\n"
        "from toolkit.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    imported = set(done.stderr.split())
    assert not imported & (HEAVY | {"altair", "pandas", "vl_convert", "jinja2"})


def test_reproduce_imports_neither_torch_nor_datasets(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        f"sys.argv = ['toolkit', 'reproduce', '--site', {str(tmp_path / 'site')!r}]\n"
        "from toolkit.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "print(*sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    assert not set(done.stderr.split()) & HEAVY


def test_no_threshold_of_the_registration_lives_in_the_engine() -> None:
    """The numbers that decide stand in the rules; in `decisions` only 0, 1, 2 and formatting numbers do."""
    allowed = {0, 1, 2, 5, 9, 10, 20, 40, 80, 100, 200, 2000, 10_000}
    found = {}
    for path in (CHECKOUT / "toolkit" / "decisions").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, int | float)
                and node.value not in allowed
            ):
                found[path.name, node.lineno] = node.value
    assert {place: value for place, value in found.items() if value != 6} == {}


def test_the_engine_knows_no_study() -> None:
    """Conditions, hypotheses and endpoints are data: their names appear in no code of the engine."""
    rules = tomllib.loads((CHECKOUT / "prereg/paired-rollouts/rules.toml").read_text(encoding="utf-8"))
    names = {*rules["rules"], *rules["endpoints"], *(cell["condition"] for cell in rules["matrix"])}
    folders = ("decisions", "prereg", "website", "cli", "estimators")
    for path in (p for p in MODULES if p.relative_to(CHECKOUT / "toolkit").parts[0] in folders):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and not _is_docstring_like(node.value)
            ):
                assert node.value not in names, (path, node.lineno, node.value)


def _is_docstring_like(text: str) -> bool:
    return "\n" in text or " " in text
