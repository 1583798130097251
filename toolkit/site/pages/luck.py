"""Luck shares, and what training groups looked like: spurious, without variance, sharing a schedule."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from toolkit.decisions.case import Case
from toolkit.estimators import luck_share, spurious_rate
from toolkit.registers.arrow import Row
from toolkit.rules.values import exact
from toolkit.site.charts.estimates import luck_shares, reward_table
from toolkit.site.charts.plots import Dot
from toolkit.site.charts.svg import Chart
from toolkit.site.drawings import head, rules_reading
from toolkit.site.material import Material
from toolkit.site.page import Page, luck_page, run_page
from toolkit.site.registers import rows_by_run, rows_held

SHARES, TABLES, GROUPS = "luck_share_summary", "luck_share", "groups_summary"
COUNTS = ("groups", "all_correct", "spurious", "zero_variance", "sharing_one_seed", "several_seeds")


def pages(material: Material) -> Iterator[Page]:
    """Yield the luck page of every study that has luck shares or counted training groups."""
    for case in material.cases:
        study, shares = case.study, rows_held(case.study, SHARES)
        runs = {row["run_id"]: row for row in rows_held(study, "runs")}
        groups = [{**row, "run": runs.get(row["run_id"], {})} for row in rows_held(study, GROUPS)]
        if study.has(SHARES) or study.has(GROUPS):
            yield Page(
                luck_page(study.name),
                "luck.html",
                f"Luck share and training groups ({study.name})",
                "luck",
                {
                    **head(material.cases, case, "page of luck shares", luck_page),
                    "rules": rules_reading(case, (SHARES, TABLES, GROUPS)),
                    "charts": _charts(shares, is_summary=study.is_summary),
                    "shares": shares,
                    "example": _example(case),
                    "arms": _by_arm(groups),
                    "groups": [
                        {**row, "page": run_page(study.name, row["run_id"]), "rate": _rate(row)}
                        for row in groups
                    ],
                },
            )


def _charts(rows: Sequence[Row], *, is_summary: bool) -> list[Chart]:
    """Return a chart a condition: its runs' shares of the reward that training saw, by step."""
    drawn = []
    conditions = dict.fromkeys(row["condition"] for row in rows if row["condition"] is not None)
    origin = "as published" if is_summary else "computed from the tables"
    for condition in conditions:
        of = [r for r in rows if r["condition"] == condition and r["target"] in ("observed_reward", None)]
        shares = tuple(
            Dot((r["run_id"], str(r["arm"]), r["step"]), float(r["luck_share"]), *_ends(r)) for r in of
        )
        interval = f"bars: 95% intervals {origin}, tasks resampled"
        if all(share.low is None for share in shares):
            interval = "no intervals: the study holds none for these runs"
        elif any(share.low is None for share in shares):
            interval += "; a dot without a bar has none"
        if chart := luck_shares(f"Condition {condition}", shares, interval):
            drawn.append(chart)
    return drawn


def _ends(row: Row) -> tuple[float | None, float | None]:
    if row["interval_low"] is None or row["interval_high"] is None:
        return None, None
    return float(row["interval_low"]), float(row["interval_high"])


def _example(case: Case) -> dict[str, Any] | None:
    """Return one table of rewards: of the first deciding run, at its first step, the luckiest task."""
    by_run = rows_by_run(case.study, TABLES)
    first = next((run for run in _registered_runs(case) if run in by_run), None)
    if first is None:
        return None
    step = min(row["step"] for row in by_run[first])
    at_step = [row for row in by_run[first] if row["step"] == step]
    pool = at_step[0]["pool"]
    tasks: dict[int, list[Row]] = {}
    for row in at_step:
        if row["pool"] == pool:
            tasks.setdefault(row["task"], []).append(row)
    split = {task: luck_share([row["observed_rewards"] for row in held]) for task, held in tasks.items()}
    defined = {task: parts.share for task, parts in split.items() if parts.share is not None}
    if not defined:
        return None
    task = max(defined, key=lambda t: (defined[t], -t))
    held = sorted(tasks[task], key=lambda row: row["schedule"])
    named = f"{first}, step {step}, {pool} task {task}, observed rewards"
    words = (
        f"Luck share {defined[task]:.2f}: {split[task].between:.3f} between schedules, "
        f"{split[task].within:.3f} within (reward²)"
    )
    grid = tuple(tuple(map(bool, row["observed_rewards"])) for row in held)
    return {
        "chart": reward_table(named, words, grid, tuple(row["schedule"] for row in held)),
        "run": first,
        "run_page": run_page(case.study.name, first),
        "task": task,
        "step": step,
        "defined": len(defined),
        "tasks": len(tasks),
        "schedules": len(held),
        "rollouts": len(held[0]["observed_rewards"]),
    }


def _registered_runs(case: Case) -> Iterator[str]:
    """Yield the runs of the registered matrix that the study has, in its order, deciding ones alone."""
    plan, held = case.book.plan, dict[tuple[str, str, int], str]()
    for row in case.study.rows("runs"):
        if row["role"] in plan.roles:
            held.setdefault((row["condition"], row["arm"], row["seed"]), row["run_id"])
    places = ((cell.condition, arm, seed) for cell in plan.cells for arm in cell.arms for seed in cell.seeds)
    return (held[place] for place in places if place in held)


def _by_arm(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the counts of every condition and arm, added up over its runs, beside what theory gives."""
    arms: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        key = (row["condition"], row["arm"], row["run"].get("scale_rewards"), row["run"].get("role"))
        arms.setdefault(key, []).append(row)
    counted = [
        {
            **dict(zip(("condition", "arm", "scaling", "role"), key, strict=True)),
            "expected": _expected(of[0]["run"], key[1]),
            "runs": len(of),
            **{name: _sum([row[name] for row in of]) for name in COUNTS},
        }
        for key, of in arms.items()
    ]
    return [{**entry, "rate": _rate(entry)} for entry in counted]


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _rate(entry: Mapping[str, Any]) -> float | None:
    """Return spurious groups over all-correct ones; None where there is no all-correct group."""
    return float(Fraction(entry["spurious"], entry["all_correct"])) if entry["all_correct"] else None


def _expected(run: Mapping[str, Any], arm: str) -> float | None:
    """Return the rate of spurious groups that theory gives; None where it says nothing of the arm."""
    flips, size = run.get("flip_rate"), run.get("group_size")
    if flips is None or size is None:
        return None
    if arm == "independent":
        return float(spurious_rate(exact(flips), size))
    # All rollouts of a paired group share one flip: it reaches everybody or nobody.
    return 0.0 if arm in ("paired", "clean") or not flips else None
