"""What exhibits draw: the designs, exact theory, and the paper's figures, from files and estimators alone."""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.unit.site.labels import Figure, shown
from tests.unit.site.tables import PERIODIC, matching, means, rows
from toolkit.estimators import bandit, bandit_drift, orthogonal_condition, spurious_rate

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
