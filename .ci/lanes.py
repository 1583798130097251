"""Run the slow lanes that a change touches, and name the others: `python .ci/lanes.py [--list] [--record]`.

`.ci/tested.json` names the last commit on which `make test-all` passed, and when. Everything runs where that
is older than two days, unknown here, or of other dependencies. `--record` writes it for HEAD.
"""

import argparse
import datetime as dt
import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTED = ROOT / ".ci" / "tested.json"
LONGEST = dt.timedelta(days=2)

# What each lane guards: prefixes of paths. A lane is a target of the Makefile.
DECIDING = ("toolkit/decisions/", "toolkit/rules/", "toolkit/estimators/")
TRAINING = ("toolkit/lab/training/", "toolkit/lab/policies/language_model/", "toolkit/lab/play/")
REGISTERS = ("toolkit/registers/", "tests/unit/registers/")
LANES: dict[str, tuple[str, ...]] = {
    "slow-core": (
        *(*DECIDING, *REGISTERS, "toolkit/cases.py", "toolkit/registrations.py", "toolkit/cli/"),
        *("toolkit/drafting/", "toolkit/exports/"),
        *("toolkit/prereg/", "toolkit/verification/", "tests/hub/", "tests/unit/"),
    ),
    "slow-tampering": (
        "toolkit/prereg/",
        "toolkit/verification/",
        *REGISTERS,
        "toolkit/cli/verify",
        "tests/tampering/",
    ),
    "slow-estimators": ("toolkit/estimators/", "tests/unit/estimators/"),
    "slow-properties": (
        *(*DECIDING, *REGISTERS, "toolkit/noise/layer.py", "toolkit/noise/trainers/", "toolkit/prereg/"),
        *("toolkit/seeds.py", "tests/properties/"),
    ),
    "slow-site": (*DECIDING, "toolkit/site/", "tests/browser/", "tests/unit/site/"),
    "slow-lab": (
        *DECIDING,
        "toolkit/lab/",
        "toolkit/noise/",
        "examples/",
        "tests/golden/",
        "tests/unit/lab/",
    ),
    "slow-architecture": (
        "toolkit/cli/",
        "toolkit/lab/commands/",
        "cards/",
        "GUIDE.md",
        "README.md",
        "pyproject.toml",
    ),
    "other-majors": (*REGISTERS, "tests/hub/"),
    "newest-train": (*TRAINING, "toolkit/noise/trainers/", "tests/unit/lab/training/"),
    "inspect": ("toolkit/registers/importing/", "toolkit/lab/worlds/", "tests/inspect/"),
    "openenv": ("toolkit/noise/", "tests/pairing/"),
    "verifiers": ("toolkit/noise/", "tests/pairing/"),
    "mcp-servers": ("toolkit/noise/mcp/", "tests/mcp_servers/"),
    "vllm": (
        *TRAINING,
        "toolkit/lab/evaluating.py",
        "toolkit/lab/evaluation/",
        "toolkit/lab/probe/",
        "tests/vllm/",
    ),
}
CODE = "toolkit/"


def git(*words: str) -> str:
    """Return what git prints, or nothing where it fails."""
    return subprocess.run(["git", *words], cwd=ROOT, check=False, capture_output=True, text=True).stdout


def dependencies(text: str) -> object:
    """Return what `pyproject.toml` asks of other packages."""
    document = tomllib.loads(text)
    project = document["project"]
    return project["dependencies"], project["optional-dependencies"], document["dependency-groups"]


def why_whole(tested: dict[str, str]) -> str:
    """Return why everything has to run, or nothing."""
    commit, when = tested["commit"], dt.datetime.fromisoformat(tested["date"])
    if git("cat-file", "-t", commit).strip() != "commit":
        return f"commit {commit[:8]}, tested last, is not in this clone"
    if dt.datetime.now(dt.UTC) - when > LONGEST:
        return f"everything was tested last on {when:%Y-%m-%d}, more than {LONGEST.days} days ago"
    if locks := [name for name in changed(commit) if name.startswith("requirements")]:
        return f"a dependency changed: {locks[0]}"
    here = (ROOT / "pyproject.toml").read_text("utf-8")
    if dependencies(git("show", f"{commit}:pyproject.toml")) != dependencies(here):
        return "a dependency changed: pyproject.toml"
    return ""


def changed(commit: str) -> list[str]:
    """Return the files that differ from a commit, also those that git does not know yet."""
    new = git("ls-files", "--others", "--exclude-standard")
    return (git("diff", "--name-only", commit) + new).splitlines()


def chosen(names: list[str]) -> dict[str, str]:
    """Return each lane with the first changed file that it guards, or nothing."""
    return {
        lane: next((name for name in names if name.startswith(paths)), "") for lane, paths in LANES.items()
    }


def record() -> int:
    """Write down that everything passed on the commit that is checked out."""
    if git("status", "--porcelain"):
        print("not recorded as wholly tested: there are changes that are not committed")
        return 0
    document = {
        "commit": git("rev-parse", "HEAD").strip(),
        "date": f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%MZ}",
    }
    TESTED.write_text(json.dumps(document) + "\n", "utf-8")
    print(f"recorded in {TESTED.relative_to(ROOT)}: commit it")
    return 0


def main() -> int:
    """Run what has to run; say what does not."""
    parser = argparse.ArgumentParser(prog="python .ci/lanes.py", description=__doc__)
    parser.add_argument("--list", action="store_true", help="say what would run, and run nothing")
    parser.add_argument("--record", action="store_true", help="record that everything passed on this commit")
    asked = parser.parse_args()
    if asked.record:
        return record()
    tested = json.loads(TESTED.read_text("utf-8"))
    if whole := why_whole(tested):
        print(f"everything runs: {whole}", flush=True)
        return 0 if asked.list else subprocess.run(["make", "test-all"], cwd=ROOT, check=False).returncode
    names = changed(tested["commit"])
    lanes = chosen(names)
    print(f"since {tested['commit'][:8]}, wholly tested {tested['date']}, {len(names)} files changed")
    if any(name.startswith(CODE) for name in names):
        lanes["mutants-touched"] = "code"
    for lane in {**lanes, "mutants-touched": ""}:
        why = lanes.get(lane)
        print(f"  {lane:<17} {f'runs: {why}' if why else 'SKIPPED: nothing that it guards has changed'}")
    for lane in [] if asked.list else [lane for lane, why in lanes.items() if why]:
        sys.stdout.flush()
        started = time.monotonic()
        done = subprocess.run(["make", lane, f"SINCE={tested['commit']}"], cwd=ROOT, check=False)
        print(f"{lane}: {'FAILED' if done.returncode else 'passed'} in {time.monotonic() - started:.0f} s")
        if done.returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
