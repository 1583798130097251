"""Make every defect of the list, one at a time, and run the tests that guard it: `python -m tests.mutants`.

A defect is killed where a test fails, and survives where all pass. One that no longer fits the checkout, or
stops its tests from being collected or from
ending, is stale; so is one whose tests fail without it. Exit status 1: some
defect is stale, survives without a reason, or is killed although a reason is given.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutants.bench import SECONDS_FOR_ALL, Bench
from tests.mutants.defects import ROOT, Defect, load

PASSED, FAILED, LATE = 0, 1, -1


def judged(bench: Bench, defect: Defect) -> tuple[str, str]:
    """Return what becomes of a defect, and more where that is stale."""
    if defect.stale:
        return "stale", defect.stale
    text = (bench.tree / defect.file).read_text("utf-8")
    bench.replace(defect.file, text.replace(defect.old, defect.new))
    status, output = bench.run(defect.tests)
    bench.replace(defect.file, text)
    if status in {PASSED, FAILED}:
        return "survived" if status == PASSED else "killed", ""
    return "stale", "its tests " + ("take too long" if status == LATE else f"did not run:\n{output}")


def is_as_listed(defect: Defect, fate: str) -> bool:
    """Return whether a defect fared as the list says."""
    return fate == ("survived" if defect.survives else "killed")


def judge_all(defects: Sequence[Defect], jobs: int) -> list[dict[str, Any]]:
    """Judge defects, after their tests were seen passing without them."""
    guards = sorted({guard for defect in defects if not defect.stale for guard in defect.tests})
    waiting, ready, sound = iter(defects), threading.Barrier(jobs), [True]
    fates: dict[Defect, tuple[str, str]] = {}

    def work(bench: Bench, mine: Sequence[str]) -> None:
        status, output = bench.run(mine, SECONDS_FOR_ALL) if mine else (PASSED, "")
        if status != PASSED:
            print(f"tests do not pass without any defect:\n{output}", file=sys.stderr)
            sound[0] = False
        ready.wait()
        for defect in waiting if sound[0] else ():
            started = time.monotonic()
            fate, why = fates[defect] = judged(bench, defect)
            mark = "" if is_as_listed(defect, fate) else " <<<"
            took = time.monotonic() - started
            line = f"{len(fates)}/{len(defects)} {defect.room}: {defect.name}: {fate} ({took:.1f} s){mark}"
            print(line, why, file=sys.stderr, flush=True)
        bench.close()

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        benches = [Bench(Path(folder) / str(i)) for i in range(jobs)]
        threads = [threading.Thread(target=work, args=(b, guards[i::jobs])) for i, b in enumerate(benches)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = []
    for defect in defects:
        fate, why = fates.get(defect, ("stale", "its tests were not seen passing without it"))
        row = {"room": defect.room, "file": defect.file, "name": defect.name, "survives": defect.survives}
        rows.append(row | {"fate": fate, "why": why, "ok": is_as_listed(defect, fate)})
    return rows


def drawn(defects: Sequence[Defect], size: int) -> list[Defect]:
    """Return some defects: the last commit says which, so that who runs them again has the same ones."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    return random.Random(commit).sample(defects, size)  # noqa: S311 - nobody guesses at it


def main() -> int:
    """Judge what was asked for and say how it fared."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--room", help="one room's only")
    parser.add_argument("--only", help="those whose file and name this pattern finds only")
    parser.add_argument("--draw", type=int, help="no more than so many, drawn by the last commit")
    parser.add_argument("--since", help="those of files that differ from this commit only")
    parser.add_argument("--check", action="store_true", help="whether each fits the checkout; run nothing")
    parser.add_argument("--json", action="store_true", help="a list of all, for programs")
    asked = parser.parse_args()
    defects = [
        defect
        for defect in load()
        if asked.room in {None, defect.room} and re.search(asked.only or "", f"{defect.file} {defect.name}")
    ]
    if asked.since:
        words = ["git", "diff", "--name-only", asked.since]
        differ = subprocess.run(
            words, cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        defects = [defect for defect in defects if defect.file in differ]
    if asked.check:
        stale = [f"{defect.room}: {defect.name}: {defect.stale}" for defect in defects if defect.stale]
        print(*stale, f"{len(defects)} defects, {len(stale)} stale", sep="\n")
        return bool(stale)
    if asked.draw is not None and asked.draw < len(defects):
        defects = drawn(defects, asked.draw)
    outcomes = judge_all(defects, asked.jobs)
    if asked.json:
        print(json.dumps(outcomes, indent=1))
    else:
        wrong = [row for row in outcomes if not row["ok"]]
        print(*(f"{row['room']}: {row['name']} ({row['file']}): {row['fate']}" for row in wrong), sep="\n")
        count = Counter(row["fate"] for row in outcomes)
        print(", ".join(f"{number} {fate}" for fate, number in count.items()) or "no such defect")
    return (not defects and not asked.since) or not all(row["ok"] for row in outcomes)


if __name__ == "__main__":
    sys.exit(main())
