"""What was seen before a freeze: the rows of every pilot that a draft was made from or rehearsed on.

They are kept as hashes, which are frozen with the draft: rows that were seen are no evidence.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError, UsageError
from toolkit.files import read_text, write_text
from toolkit.prereg.record import FROZEN, PILOTS
from toolkit.registers.episode_counts import OUTCOMES
from toolkit.registers.study import SEEN

if TYPE_CHECKING:
    import polars as pl

REHEARSALS = "rehearsals"
_RUN = ("condition", "arm", "seed")
_ROW = (*_RUN, "pool", "regime", "step", "task", *OUTCOMES, "calls", "tokens", "cost")
_LENGTH = 16
MOST_LISTED = 3
MOST_ROWS = 2000
"""Of a run with more rows these many are kept, those with the smallest hashes."""


@dataclass(frozen=True)
class Pilots:
    """What was seen of a study before its freeze."""

    # Run → its rows, each as the first sixteen hexadecimal digits of a SHA-256
    seen: Mapping[str, frozenset[str]]
    rules: str = ""  # SHA-256 of the rules that were rehearsed last; empty where none were
    undecided: tuple[str, ...] = ()  # rules that had no verdict then, each with the reason


def rows_of_runs(rows: pl.DataFrame) -> dict[str, frozenset[str]]:
    """Return the rows of each run of a log, hashed: where it was played, and what came of it."""
    import polars as pl

    def said(names: Sequence[str]) -> pl.Expr:
        there = [pl.col(name).cast(pl.String).fill_null("") for name in names if name in rows.columns]
        return pl.concat_str(there, separator="\x1f")

    # Rollouts of a task that came out alike are numbered: how many there were counts, too.
    told = rows.select(run=said(_RUN), row=said(_ROW)).group_by("run", "row").len()
    found: dict[str, set[str]] = {}
    for run, row, count in told.iter_rows():
        found.setdefault(_hashed(run), set()).update(_hashed(f"{row}\x1f{k}") for k in range(count))
    return {run: frozenset(sorted(of)[:MOST_ROWS]) for run, of in found.items()}


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def draft_record(root: Path, name: str) -> Path:
    """Return where what was seen of a draft is kept until it is frozen."""
    return root / REHEARSALS / f"{name}.{PILOTS}"


def read_pilots(path: Path) -> Pilots:
    """Return what was seen before a freeze; nothing where nobody recorded any of it."""
    if not path.is_file():
        return Pilots({})
    try:
        said: dict[str, Any] = json.loads(read_text(path))
        seen = {run: frozenset(map(str, rows)) for run, rows in said["seen"].items()}
        return Pilots(seen, str(said["rules"]), tuple(map(str, said["undecided"])))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DamagedError("the record of pilots cannot be read", where=path) from None


def record(path: Path, rows: pl.DataFrame, rules: str = "", undecided: Sequence[str] = ()) -> None:
    """Record that a draft met a pilot: `path` is that of `draft_record`."""
    before = read_pilots(path)
    new = rows_of_runs(rows)
    both = {run: {*before.seen.get(run, ()), *new.get(run, ())} for run in {*before.seen, *new}}
    seen = {run: sorted(rows)[:MOST_ROWS] for run, rows in both.items()}
    document = {
        "seen": dict(sorted(seen.items())),
        "rules": hashlib.sha256(rules.encode()).hexdigest() if rules else before.rules,
        "undecided": list(undecided) if rules else list(before.undecided),
    }
    path.parent.mkdir(exist_ok=True)
    write_text(path, json.dumps(document, indent=0, ensure_ascii=False) + "\n")


def carry(root: Path, name: str, folder: Path) -> None:
    """Put what was seen of a draft among the files that are frozen."""
    path = draft_record(root, name)
    if path.is_file() and not (folder / FROZEN).exists():
        write_text(folder / PILOTS, read_text(path))


def check_rehearsed(path: Path, rules: str) -> None:
    """Check that rules as they were rehearsed last had a verdict."""
    pilots = read_pilots(path)
    if pilots.undecided and pilots.rules == hashlib.sha256(rules.encode()).hexdigest():
        raise UsageError(
            "the rules had no verdict on the pilot, and would have none on such data",
            expected="a verdict of every rule where it is rehearsed",
            found="; ".join(pilots.undecided),
            remedy="change what keeps them from one, and rehearse them again",
        )


def pilot_runs(pilots: Pilots, rows: pl.DataFrame) -> list[str]:
    """Return the runs of a log that are the pilot's: all of their rows, or all that it had of them."""
    if not pilots.seen:
        return []
    there = rows_of_runs(rows)
    found = {run for run, of in there.items() if is_seen(of, pilots.seen.get(run, frozenset()))}
    names = rows.select(_RUN).unique(maintain_order=True).iter_rows()
    return [f"{c} {a} seed {s}" for c, a, s in names if _hashed(f"{c}\x1f{a}\x1f{s}") in found]


def is_seen(rows: frozenset[str], pilot: frozenset[str]) -> bool:
    """Whether one holds the other, as far as both were kept."""
    kept = [max(of) for of in (rows, pilot) if len(of) >= MOST_ROWS]
    mine, theirs = ({row for row in of if not kept or row <= min(kept)} for of in (rows, pilot))
    return bool(mine & theirs) and (mine <= theirs or theirs <= mine)


def check_unseen(
    folder: Path, rows: pl.DataFrame, reason: str | None, before: str | None
) -> dict[str, bytes]:
    """Check that no run of a log was seen before the freeze; return what is recorded if some are let in.

    `reason` is why, `before` what a study in its place has recorded.
    """
    seen = pilot_runs(read_pilots(folder / PILOTS), rows)
    if not seen:
        return {}
    why = reason or (json.loads(before)["reason"] if before else None)
    if not why:
        more = len(seen) - MOST_LISTED
        listed = ", ".join(seen[:MOST_LISTED]) + (f", and {more} more" if more > 0 else "")
        raise UsageError(
            "these rows are the pilot's: they were seen before the rules were frozen, and are no evidence",
            expected="runs that were made after the freeze",
            found=listed,
            remedy="import the log of the study; or say why these count, and each verdict says that they are "
            "among them: --replace 'REASON'",
        )
    return {SEEN: (json.dumps({"reason": why, "runs": seen}, indent=2, ensure_ascii=False) + "\n").encode()}
