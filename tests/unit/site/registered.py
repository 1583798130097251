"""What the registers give for the drawings of a page, asked of their Parquet files alone."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from tests.unit.site.labels import Figure, shown
from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision
from toolkit.decisions.intervals import Interval
from toolkit.estimators import bandit, bandit_drift, orthogonal_condition, spurious_rate
from toolkit.lab.probing.report import report
from toolkit.registers.study import open_study
from toolkit.rules.endpoints import Endpoint, Rate
from toolkit.rules.values import Missing
from toolkit.site.page import Page

Row = dict[str, Any]
PERIODIC = "periodic"


@cache
def rows(study: Path, name: str) -> list[Row]:
    """Return the rows of a table's files; none where the study has no such table."""
    files = sorted((study / name).glob("*.parquet"))
    return pl.read_parquet(files).to_dicts() if files else []


def matching(held: Sequence[Row], **cells: Any) -> list[Row]:
    return [row for row in held if all(row[name] == cell for name, cell in cells.items())]


def means(arm: str, by_step: Mapping[int, list[tuple[int, int]]], seeds: int) -> Iterator[Sequence[Any]]:
    """Yield the mean of an arm's rates at every step where all seeds have counts, with their sums."""
    for step, counts in by_step.items():
        if len(counts) == seeds:
            whole = (
                tuple(map(sum, zip(*counts, strict=True))) if len({n for _, n in counts}) == 1 else ("", "")
            )
            yield (arm, "mean", step, fmean(k / n for k, n in counts), *whole)


PAPER = ((("C2",), "faults_p025"), (("C2",), "challenge"), (("C4", "C0"), "clean"))


def designs(study: Path, drawn: Sequence[Figure]) -> Iterator[Sequence[str]]:
    """Yield what the front page's marks say: of both designs, and of one of the study's tables of rewards."""
    said = {row for figure in drawn if figure.kind == "sentence" for (row,) in shown(figure).pop()}
    yield ("Paired: all 8 rollouts of a group meet one schedule",)
    yield from ((f"Independent: rollout {k} alone meets schedule {k}",) for k in range(1, 9))
    tables: dict[tuple[Any, ...], list[Sequence[str]]] = {}
    for row in rows(study, "luck_share"):
        won = row["observed_rewards"]
        told = f"Schedule {row['schedule']}: {sum(won)} of {len(won)} policy samples succeed"
        place = tuple(row[name] for name in ("run_id", "step", "pool", "regime", "task"))
        tables.setdefault(place, []).append((told,))
    yield from next((told for told in tables.values() if {row for (row,) in told} <= said), ())


def theory() -> Iterator[Iterator[Sequence[Any]]]:
    """Yield the paper's bandit at even odds, eight rollouts and a flip rate of a tenth."""
    half, size, rates = Fraction(1, 2), 8, [Fraction(k, 50) for k in range(26)]
    swept = [(float(q), bandit(half, size, q)) for q in rates]
    for name in ("contrast_variance", "mean_centred_trace"):
        both = [(q, getattr(one, name)) for q, one in swept]
        yield ((arm, q, getattr(v, arm)) for arm in ("independent", "paired") for q, v in both)
    left, right = "L, clean gradient", "R, score spread"
    sides = [(p / 50, bandit(Fraction(p, 50), size, Fraction(1, 10))) for p in range(1, 50)]
    pairs = [(p, one.clean_norm_squared, one.score_spread) for p, one in sides]
    yield (row for p, low, high in pairs for row in ((left, p, low), (right, p, high)))
    exact = [(k, orthogonal_condition(k, size)) for k in range(size + 1)]
    yield (row for k, one in exact for row in ((left, k, one.left), (right, k, one.right)))
    yield ((f"G = {g}", float(q), spurious_rate(q, g)) for g in (4, 8, 16, 32) for q in rates)
    yield (
        (f"q = {float(q):g}", b, drift.paired / drift.independent)
        for q in (Fraction(1, 10), Fraction(1, 5))
        for b in (1, 2, 4, 8, 16, 24)
        for drift in [bandit_drift(half, size, q, b).mean_centred]
    )


def paper(study: Path) -> Iterator[tuple[str, Sequence[Sequence[Any]]]]:
    runs = {
        run["run_id"]: run
        for run in rows(study, "runs")
        if run["seed"] < 3 and run["role"] != "replication" and (run["scale_rewards"] or "group") == "group"
    }
    for conditions, regime in PAPER:
        points: list[Sequence[Any]] = []
        by_arm: dict[str, dict[int, list[tuple[int, int]]]] = {}
        for row in matching(rows(study, "evaluations"), phase=PERIODIC, regime=regime):
            run = runs.get(row["run_id"])
            arms = ("clean",) if run and run["condition"] == "C0" else ("paired", "independent")
            if run and run["condition"] in conditions and run["arm"] in arms:
                counts = row["successes"], row["episodes"]
                points.append(
                    (run["arm"], f"seed {run['seed']}", row["step"], counts[0] / counts[1], *counts)
                )
                by_arm.setdefault(run["arm"], {}).setdefault(row["step"], []).append(counts)
        for arm, by_step in by_arm.items():
            points += means(arm, by_step, len({series for a, series, *_ in points if a == arm}))
        if points:
            yield "arm", points
    for noise in ("outcome", "transition"):
        for estimator in ("MC", "SW"):
            of = matching(rows(study, "probe"), noise=noise, estimator=estimator, scored="all")
            of = [r for r in of if re.fullmatch(r"base|A|B|c2-paired-s[0-2]", r["trajectory"])]
            ratios = [
                (r["trajectory"], r["step"], r["trace_paired"] / r["trace_independent"], "", "") for r in of
            ]
            if ratios:
                yield "trajectory", ratios


Expected = list[tuple[str, Sequence[Sequence[Any]]]]
"""Kind of a figure, and its rows."""
FIGURES = {
    "outcome": ("condition_left/condition_right", "trace_paired/trace_independent"),
    "transition": ("trace_paired/trace_independent",),
}
NAMES = {
    "condition_left/condition_right": "condition_ratio",
    "trace_paired/trace_independent": "trace_ratio",
    "trace_paired/trace_stratified": "trace_ratio_stratified",
}
TRAINER = {
    "Loss": "loss",
    "Gradient norm": "grad_norm",
    "Entropy": "entropy",
    "Share of tokens clipped": "clipped",
    "Importance weight": "importance_weight_mean",
}
MOST_ENDPOINTS, FIRST = 8, 3
ON_PAPER = ("published", "embedded")


def expected(case: Case, page: Page, drawn: Sequence[Figure]) -> Expected:  # noqa: PLR0911 - one a kind of page
    """Return what a page's figures should show."""
    study, context = case.study.folder, page.context
    match page.template:
        case "run.html":
            return _run(study, context["run"]["run_id"])
        case "rule.html":
            return _rule(case, next(d for d in case.decide_all() if d.rule == context["d"].rule))
        case "study.html":
            hypotheses = [d for d in case.decide_all() if d.kind == "hypothesis" and d.estimate]
            drawings = [found for d in hypotheses for found in _estimate(d)][:FIRST]
            return [*_forest(case), *_pictures(case, set(case.book.pictures)), *drawings]
        case "home.html":
            said = [("sentence", list(designs(study, drawn)))]
            return [*_forest(case), *_pictures(case, set(case.book.pictures)), *said]
        case "probe.html":
            return [*_probe(case), *(("task", _tasks(study, f.about)) for f in drawn if f.kind == "task")]
        case "luck.html":
            tables = [("schedule", _table(study, f.about)) for f in drawn if f.kind == "schedule"]
            return [*_shares(study), *tables] if rows(study, "luck_share") else _shares(study)
        case "registration.html":
            mine = case.registration.name == page.name.rpartition("/")[2].removesuffix(".html")
            return [("lane", list(_dated(case)))] if mine else []
        case "theory.html":
            return [("line", list(of)) for of in theory()]
        case "paper.html":
            return list(paper(study)) if case.study.name in ON_PAPER else []
        case _:
            return []


def _run(study: Path, run: str) -> Expected:
    held = matching(rows(study, "evaluations"), run_id=run)
    pools: dict[str, set[str]] = {}
    for row in held:
        pools.setdefault(row["phase"], set()).add(row["pool"])
    points = [
        (
            ", ".join(
                [row["regime"].replace("_", " ")]
                + [row["pool"]] * (len(pools[row["phase"]]) > 1)
                + [row["phase"]] * (row["phase"] != PERIODIC)
            ),
            *(row[name] for name in ("step", "successes", "episodes")),
        )
        for row in held
    ]
    found: Expected = [("set", points)] if points else []
    steps = matching(rows(study, "steps"), run_id=run)
    for name, column in TRAINER.items():
        if any(row.get(column) is not None for row in steps):
            found.append((f"step {name}", [(r["step"], r[column]) for r in steps if r[column] is not None]))
    launches = [r for r in matching(rows(study, "launches"), run_id=run) if r.get("step_seconds")]
    taken = {
        launch["from_step"] + k: seconds
        for launch in sorted(launches, key=lambda row: row["attempt"])
        for k, seconds in enumerate(launch["step_seconds"], 1)
    }
    return [*found, ("step Seconds a step", list(taken.items()))] if taken and steps else found


def _rule(case: Case, decision: Decision) -> Expected:
    found = _estimate(decision)
    read = set(decision.statistics)
    of = {
        name
        for name, picture in case.book.pictures.items()
        if read & {*(p.statistic for p in picture.points), *(p.statistic for p in picture.across)}
    }
    if len(decision.endpoints) > MOST_ENDPOINTS:
        return [*found, *_pictures(case, of)]
    curves: list[list[Sequence[Any]]] = []
    for endpoint in (case.book.endpoints[name] for name in decision.endpoints):
        if endpoint.over_steps:
            curve = _curve(case, endpoint)
            curves += [curve] if curve and curve not in curves else []
        elif endpoint.by in ("checkpoint", "run"):
            is_end = getattr(endpoint.outcome, "figure", "").startswith("interval_")
            series = [] if is_end else list(_series(case, endpoint))
            if len({value for _, value, *_ in series}) > 1:
                found.append(("run value" if endpoint.by == "run" else endpoint.by, series))
    return [*found, *(("arm", curve) for curve in curves)]


def _estimate(decision: Decision) -> Expected:
    estimate = decision.estimate
    if estimate is None or estimate.members is None:
        return []
    present = [(k, v) for k, v in estimate.members.items if not isinstance(v, Missing)]
    if not present:
        return []
    found: list[Sequence[Any]] = [(f"{estimate.members.unit} {name}", v, "", "") for name, v in present]
    if not isinstance(estimate.mean, Missing):
        found.append(("mean", estimate.mean, *_ends(decision.interval)))
    return [("member", found)]


def _ends(interval: Interval | Missing | None) -> tuple[Any, Any]:
    return (interval.low, interval.high) if isinstance(interval, Interval) else ("", "")


def _forest(case: Case) -> Expected:
    """Return the rows of a page's forest plots: of each kind of rule, those in its commonest unit."""
    found: list[Sequence[Any]] = []
    decisions = case.decide_all()
    for kind in dict.fromkeys(d.kind for d in decisions):
        whole = [
            (d.estimate.unit, (d.rule, d.verdict.replace("_", " "), d.estimate.mean, *_ends(d.interval)))
            for d in decisions
            if d.kind == kind
            and d.estimate
            and isinstance(d.estimate.mean, Fraction)
            and isinstance(d.interval, Interval)
        ]
        units = [unit for unit, _ in whole]
        found += [row for unit, row in whole if unit == max(units, key=units.count)]
    return [("rule", found)] if found else []


def _pictures(case: Case, names: set[str]) -> Expected:
    found: Expected = []
    for name, picture in case.book.pictures.items():
        seen = [(p, case.engine.value(p.statistic)) for p in picture.points]
        there = [(p, value) for p, value in seen if isinstance(value, Fraction)]
        points = [
            (k, p.name, *p.predicted, v, *_ends(case.engine.interval(p.interval) if p.interval else None))
            for k, (p, v) in enumerate(there, 1)
        ]
        found += [("number", points * len(picture.across))] if points and name in names else []
    return found


def _curve(case: Case, endpoint: Endpoint) -> list[Sequence[Any]]:
    """Return a learning curve's points: each run's counts, and means where every seed has some."""
    study, outcome = case.study.folder, endpoint.outcome
    assert isinstance(outcome, Rate)
    runs = [
        run
        for run in rows(study, "runs")
        if run["condition"] == endpoint.condition
        and (run["scale_rewards"] or "group") == endpoint.scale_rewards
    ]
    found: list[Sequence[Any]] = []
    for arm in endpoint.arms:
        by_step: dict[int, list[tuple[int, int]]] = {}
        for run in (run for run in runs if run["arm"] == arm and run["seed"] in endpoint.seeds):
            decides = run["role"] in case.book.plan.roles
            if not decides and run["role"] != "replication":
                continue
            for row in matching(rows(study, "evaluations"), run_id=run["run_id"], **endpoint.where):
                counts = row[outcome.count], row[outcome.of]
                series = f"seed {run['seed']}" if decides else "replication"
                found.append((arm, series, row["step"], counts[0] / counts[1], *counts))
                if decides:
                    by_step.setdefault(row["step"], []).append(counts)
        found += means(arm, by_step, len(endpoint.seeds))
    return found


@cache
def _intervals(study: Path) -> list[Row]:
    """Return the intervals of the probe: the register's, or what the estimators give."""
    held = rows(study, "probe_intervals")
    if held or not rows(study, "probe"):
        return held
    return [dict(row) for of in report(open_study(study)).figures.values() for row in of]


def _series(case: Case, endpoint: Endpoint) -> Iterator[Sequence[Any]]:
    study, outcome = case.study.folder, endpoint.outcome
    figure, over = (
        (outcome.count, outcome.of) if isinstance(outcome, Rate) else (outcome.figure, outcome.over)
    )
    intervals = _intervals(case.study.folder) if endpoint.register == "probe" else []
    for row in matching(rows(study, endpoint.register), **endpoint.where):
        if None in (row[figure], row[over or figure]):
            continue  # was not published
        value = float(row[figure]) / (float(row[over]) if over else 1)
        if endpoint.by == "checkpoint" and (row["trajectory"], row["step"]) in endpoint.checkpoints:
            key = {k: row[k] for k in ("trajectory", "step", "scored", "noise", "estimator")}
            ends = matching(intervals, **key, figure=NAMES.get(f"{figure}/{over}"))
            low, high = (ends[0]["low"], ends[0]["high"]) if ends else (None, None)
            yield (f"{row['trajectory']}@{row['step']}", value, low, high)
        elif endpoint.by == "run" and row.get("step") in (endpoint.steps or (None,)):
            run = next(iter(matching(rows(study, "runs"), run_id=row["run_id"])), None)
            if run is None:
                continue
            is_read = run["arm"] in endpoint.arms and run["seed"] in endpoint.seeds
            if is_read and run["role"] in case.book.plan.roles and run["condition"] == endpoint.condition:
                yield (row["run_id"], value, row.get("interval_low"), row.get("interval_high"))


def _probe(case: Case) -> Expected:
    held = rows(case.study.folder, "probe")
    named = {
        place
        for endpoint in case.book.endpoints.values()
        if endpoint.register == "probe" and endpoint.by == "checkpoint"
        for place in ((*c, endpoint.where.get("scored")) for c in endpoint.checkpoints)
    }
    registered = [
        r for r in held if {(r["trajectory"], r["step"], s) for s in (r["scored"], None)} & named
    ] or held
    intervals = _intervals(case.study.folder)
    found: Expected = []
    for scored in dict.fromkeys(row["scored"] for row in registered):
        for noise, quotients in FIGURES.items():
            for quotient in quotients:
                above, below = quotient.split("/")
                points: list[Sequence[Any]] = []
                for row in matching(registered, scored=scored, noise=noise, estimator="MC"):
                    key = {k: row[k] for k in ("trajectory", "step", "scored", "noise", "estimator")}
                    for one in matching(intervals, **key, figure=NAMES[quotient]):
                        # What is stored has six digits; the quotient of the probe's own figures has all.
                        assert abs(one["value"] - row[above] / row[below]) < 1e-5 * one["value"]
                        points.append((row["trajectory"], row["step"], one["value"], one["low"], one["high"]))
                found += [("trajectory", points)] if points else []
    return found


def _tasks(study: Path, about: str) -> list[Sequence[Any]]:
    """Return both sides of the condition at the checkpoint that a drawing names."""
    trajectory, _, rest = about.partition("@")
    step, scored = rest.split()[:2]
    of = matching(
        rows(study, "probe_clean_tasks"), trajectory=trajectory, step=int(step), scored=scored.strip("(")
    )
    return [(r["task_id"], r["condition_left"], r["condition_right"]) for r in of]


def _shares(study: Path) -> Expected:
    found: dict[str, list[Sequence[Any]]] = {}
    for r in rows(study, "luck_share_summary"):
        if r["condition"] is not None and r["target"] in ("observed_reward", None):
            row = r["run_id"], r["arm"], r["step"], r["luck_share"], r["interval_low"], r["interval_high"]
            found.setdefault(r["condition"], []).append(row)
    return [("run arm", points) for points in found.values()]


def _table(study: Path, about: str) -> list[Sequence[Any]]:
    """Return the rewards of the table that a drawing names."""
    run, step, place = about.partition(", observed")[0].split(", ")
    pool, _, task = place.split()
    of = matching(rows(study, "luck_share"), run_id=run, step=int(step.split()[1]), pool=pool, task=int(task))
    return [(r["schedule"], k, int(won)) for r in of for k, won in enumerate(r["observed_rewards"], 1)]


def _dated(case: Case) -> Iterator[Sequence[Any]]:
    study, registration = case.study, case.registration
    for token in registration.record.authorities:
        yield "token", token.name, token.recorded_time.isoformat(), "", f"token of {token.name}"
    added: list[tuple[str, str, date | None, str]] = [
        ("amendment", a.id, a.dated, a.title) for a in registration.amendments
    ]
    added += [(d.kind.replace("_", " "), d.id, d.dated, d.title) for d in registration.deviations]
    for kind, name, dated, title in added:
        if dated:
            yield kind, name, f"{dated}T00:00:00+00:00", "", f"{name}: {title}"
    first: dict[str, Any] = {}
    for row in rows(study.folder, "launches"):
        first[row["run_id"]] = min(row["launched_at"], first.get(row["run_id"], row["launched_at"]))
    for decides, words in ((True, "deciding runs"), (False, "runs beside the deciding ones")):
        held = [r for r in rows(study.folder, "runs") if (r["role"] in case.book.plan.roles) == decides]
        times = sorted(at for r in held if (at := first.get(r["run_id"], r["launched_at"])))
        if times:
            told = f"{len(times)} {words if len(times) > 1 else words.replace('runs', 'run', 1)}"
            span = ", first launch to last" if len(times) > 1 else ", its launch"
            until = times[-1].isoformat() if len(times) > 1 else ""
            lane = f"{'' if decides else 'other '}runs of {study.name}"
            yield lane, told, times[0].isoformat(), until, f"{told} of {study.name}{span}"
    for event in rows(study.folder, "events"):
        what = f"{event['event']}: {event['detail']}" if event["detail"] else event["event"]
        yield event["kind"].replace("_", " "), "", event["occurred_at"].isoformat(), "", what
