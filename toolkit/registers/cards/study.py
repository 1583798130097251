"""The sections of a card that tell a study: what was registered, what was run, what was decided."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.registers.arrow import Row
    from toolkit.registers.manifest import RegistrationRef


_DEMONSTRATED = "its authorities were made for the occasion; it proves nothing to others."
_TOLD = {"fault_rate": "faults, p", "flip_rate": "flips, q", "scale_rewards": "rewards scaled by"}


def registered_text(registration: RegistrationRef, *, is_demonstration: bool = False) -> str:
    """Return a table of the frozen files that the study belongs to; a demonstration is called one."""
    lines = ["| registered | SHA-256 |", "| --- | --- |"]
    lines.append(f"| registration `{registration.name}` | `{registration.sha256}` |")
    lines += [f"| amendment `{name}` | `{sha256}` |" for name, sha256 in registration.amendments.items()]
    if is_demonstration:
        lines += [
            "",
            "**A demonstration:** its authorities were made for the occasion; it proves nothing to others.",
        ]
    return "\n".join(lines)


def matrix_text(runs: Sequence[Row]) -> str:
    """Return a table of the runs: how many of each arm there are, by condition and its noise.

    Args:
        runs: rows with the columns `condition`, `arm` and `status`; noise and scaling are shown where the
            study recorded them.
    """
    told = [name for name in _TOLD if name in runs[0]]
    cells = Counter((_place(run, told), str(run["arm"])) for run in runs)
    lines = [
        f"| {' | '.join(['condition', *(_TOLD[name] for name in told), 'runs'])} |",
        f"|{' --- |' * (len(told) + 2)}",
    ]
    for place in sorted({place for place, _ in cells}):
        arms = ", ".join(f"{count} {arm}" for (where, arm), count in sorted(cells.items()) if where == place)
        lines.append(f"| {' | '.join(place)} | {arms} |")
    complete = sum(run["status"] == "COMPLETE" for run in runs)
    return "\n".join([*lines, "", f"{len(runs)} runs, {complete} of them with complete evidence."])


def outcomes_text(decisions: Sequence[Row]) -> str:
    """Return a table of decisions: verdict, evidence, estimate and interval of each rule.

    Args:
        decisions: rows of `decisions`; each may have the rule's `title` besides.
    """
    lines = [
        "| rule | about | verdict | evidence | estimate | interval |",
        "| --- | --- | --- | --- | ---: | --- |",
    ]
    for row in decisions:
        about = row.get("title") or row["kind"]
        words = (row["rule"], about, row["verdict"], row["evidence"])
        shown = " | ".join(str(word).replace("_", " ").replace("|", "\\|") for word in words)
        lines.append(f"| {shown} | {_number(row['estimate'])} | {_interval(row)} |")
    return "\n".join(lines)


def _place(run: Row, told: Sequence[str]) -> tuple[str, ...]:
    values = (run[name] for name in told)
    return str(run["condition"]), *(v if isinstance(v, str) else f"{float(v):g}" for v in values)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _interval(row: Row) -> str:
    if row["low"] is None:
        return ""
    return f"{row['level']:.0%} [{row['low']:.4f}, {row['high']:.4f}]"
