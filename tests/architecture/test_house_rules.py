"""The house rules that a machine can check, the budgets of lines, and the lanes of `.ci/run`."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import grimp
import pytest

from tests.conftest import CHECKOUT
from toolkit.places import HOME_VARIABLE

MODULES = sorted((CHECKOUT / "toolkit").rglob("*.py"))
NEED_AN_EXTRA = {f"toolkit/noise/trainers/{name}.py" for name in ("openenv", "trl", "verifiers")} | {
    "toolkit/lab/training/language_model/trainer.py"
}
"""Modules that only code imports that needs their package; no command does."""
HEAVY = {"torch", "trl", "vllm", "transformers", "peft", "datasets"}


def test_files_are_short() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path.name: n for path, n in lines.items() if n > 800} == {}


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("toolkit")
    # The public names stand at the root, and are loaded from the library above when they are used.
    for imported in graph.find_modules_directly_imported_by("toolkit"):
        graph.remove_import(importer="toolkit", imported=imported)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names a circle


def test_the_core_pulls_nothing_heavy() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = [requirement.split(">")[0].split("=")[0] for requirement in project["dependencies"]]
    assert not HEAVY & set(core)
    locked = (CHECKOUT / "requirements.lock").read_text(encoding="utf-8")
    assert not [name for name in HEAVY if f"\n{name}==" in locked]


def test_what_is_imported_at_once_comes_with_the_core() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {re.split(r"[>=<]", requirement)[0].replace("-", "_") for requirement in project["dependencies"]}
    known = {*sys.stdlib_module_names, *core, "yaml", "toolkit"}
    found = {
        (path.relative_to(CHECKOUT).as_posix(), name)
        for path in MODULES
        for name in _imported_at_once(ast.parse(path.read_text(encoding="utf-8")).body)
        if name not in known
    }
    assert {place for place, _ in found} == NEED_AN_EXTRA, sorted(found)


def _imported_at_once(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the packages that a module imports when it is imported; what only types need is left out."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.Try | ast.With):
            yield from _imported_at_once(node.body)


def test_the_other_majors_are_the_others() -> None:
    def majors(lock: str) -> dict[str, str]:
        text = (CHECKOUT / lock).read_text(encoding="utf-8")
        return {
            name: text.partition(f"\n{name}==")[2].partition(".")[0] for name in ("duckdb", "huggingface-hub")
        }

    assert majors("requirements-dev.lock") == {"duckdb": "2", "huggingface-hub": "1"}
    assert majors("requirements-other-majors.lock") == {"duckdb": "1", "huggingface-hub": "2"}


@pytest.mark.parametrize("lock", sorted(path.name for path in CHECKOUT.glob("requirements*.lock")))
def test_every_locked_package_has_a_hash_and_no_address(lock: str) -> None:
    text = (CHECKOUT / lock).read_text(encoding="utf-8")
    requirements = text.replace("\\\n", " ").splitlines()
    assert all("--hash=sha256:" in line for line in requirements if line and not line.startswith("#"))
    assert "://" not in text


def imported_by(*commands: str) -> set[str]:
    """Return the packages that are imported after some commands have run, one after another in a process."""
    script = (
        "import sys\n"
        "from toolkit.cli.main import main\n"
        f"for command in {commands!r}:\n"
        "    sys.argv = ['toolkit', *command.split()]\n"
        "    try:\n        main()\n    except SystemExit as stop:\n        assert not stop.code, command\n"
        "print(*sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", script]
    return set(
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=CHECKOUT).stderr.split()
    )


def test_everyday_commands_import_nothing_heavy() -> None:
    commands = (
        "--help",
        "decide H2a",
        "decide --all --json",
        "explain H2a",
        "registers verify --study published",
        "train --recipe qwen3.5-2b --dry-run --json",
    )
    assert imported_by(*commands) & (HEAVY | {"altair", "pandas", "vl_convert", "jinja2"}) == set()


@pytest.mark.slow
def test_reproduce_imports_neither_torch_nor_datasets(tmp_path: Path) -> None:
    assert imported_by(f"reproduce --site {tmp_path / 'site'}") & HEAVY == set()


def constants(folder: str) -> Iterator[tuple[str, int, object]]:
    """Yield each constant of a room's code with its file and line."""
    for path in (CHECKOUT / "toolkit" / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant):
                yield path.name, node.lineno, node.value


def test_no_threshold_of_the_registration_lives_in_the_engine() -> None:
    """The numbers that decide are in the rules; in the engine only 0, 1, 2 and numbers of formats are."""
    allowed = {0, 1, 2, 4, 5, 6, 9, 10, 20, 40, 80, 100, 200, 2000, 10_000}
    numbers = [
        each
        for room in ("decisions", "rules")
        for each in constants(room)
        if isinstance(each[2], int | float)
    ]
    assert [(file, line, value) for file, line, value in numbers if value not in allowed] == []


def test_the_engine_knows_no_study() -> None:
    """Conditions, hypotheses and endpoints are data: their names appear in no code of the engine."""
    rules = tomllib.loads((CHECKOUT / "prereg/paired-rollouts/rules.toml").read_text(encoding="utf-8"))
    names = {*rules["rules"], *rules["endpoints"], *(cell["condition"] for cell in rules["matrix"])}
    for folder in ("decisions", "rules", "prereg", "site", "cli", "estimators"):
        words = [each for each in constants(folder) if isinstance(each[2], str)]
        assert [each for each in words if each[2] in names] == []


def test_git_leaves_alone_what_is_hashed_here() -> None:
    words = ["git", "ls-files", "prereg", "registers", "cards", "site", "examples/own-study"]
    listed = subprocess.run(words, cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout
    asked = subprocess.run(
        ["git", "check-attr", "--stdin", "text"],
        cwd=CHECKOUT,
        input=listed,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert [line for line in asked.splitlines() if not line.endswith(": text: unset")] == []


MOST_MODULES = 84  # 74 as `-X importtime` counts, which sees no import by name
LOADED = """
import sys
from toolkit.cli.main import cli
cli(sys.argv[1:], standalone_mode=False)
print(*(name for name in sys.modules if name.partition(".")[0] == "toolkit"), file=sys.stderr)
"""


def rooms_and_core(folder: Path, *command: str) -> tuple[list[str], list[str]]:
    """Return which modules of other rooms than the core a command loads, and which of the core."""
    run = [sys.executable, "-c", LOADED, *command]
    home = {**os.environ, HOME_VARIABLE: str(folder)}
    done = subprocess.run(run, cwd=folder, env=home, capture_output=True, text=True, check=True)
    rooms = [re.match(r"toolkit\.(lab|noise|site|pairing)\b", name) for name in done.stderr.split()]
    return [found.string for found in rooms if found], done.stderr.split()


def test_deciding_on_published_figures_loads_the_core_alone_and_not_much_of_it() -> None:
    rooms, core = rooms_and_core(CHECKOUT, "decide", "H2a", "--study", "published")
    assert rooms == []
    assert len(core) <= MOST_MODULES


def test_a_verdict_has_a_short_way() -> None:
    command = [sys.executable, "-m", "tests.architecture.path_of_a_rule"]
    printed = subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout
    files, returns = map(int, re.findall(r"^(\d+) (?:files|returns)$", printed, re.MULTILINE))
    assert files <= 50
    assert returns <= 6


BUDGETS = tomllib.loads(Path(__file__).with_name("budgets.toml").read_text("utf-8"))


def lines_by_room(top: str) -> Counter[str]:
    """Return the raw lines of Python in each folder of a top folder, and of the files beside these."""
    count: Counter[str] = Counter()
    for path in sorted((CHECKOUT / top).rglob("*.py")):
        room, *rest = path.relative_to(CHECKOUT / top).parts
        count[room if rest else "files"] += len(path.read_bytes().splitlines())
    return count


@pytest.mark.parametrize("top", BUDGETS)
def test_every_room_keeps_within_its_budget(top: str) -> None:
    """A room that needs more lines raises its budget here, in a change that says what they buy."""
    lines, budgets = lines_by_room(top), BUDGETS[top]
    over = {
        room: f"{n} lines, {budgets.get(room, 0)} budgeted"
        for room, n in lines.items()
        if n > budgets.get(room, 0)
    }
    assert over == {}
    assert sorted(set(budgets) - set(lines)) == [], "no such room"


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
        ("toolkit/registers/writer.py", "slow-core slow-tampering slow-properties other-majors"),
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
