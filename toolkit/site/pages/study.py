"""A page a study: what was registered to run, what ran, what came of it, and what is missing."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from toolkit.decisions.case import Case
from toolkit.findings import at
from toolkit.registers.arrow import Row
from toolkit.rules.plan import Cell, Fixed, place_of
from toolkit.site import page
from toolkit.site.charts.estimates import seed_differences
from toolkit.site.charts.svg import Chart
from toolkit.site.drawings import estimate_of, head, outcome_tables, pictures
from toolkit.site.environment import WORDS
from toolkit.site.material import Material

CHARTS = 3
# What training here leaves behind: a study that has none of it misses nothing.
OF_TRAINING = {"groups", "groups_summary", "luck_share_summary", "checkpoints", "probe"}

LEFT_OUT = "left out, as registered: a run is played again from its start, which gives them again"


def pages(material: Material) -> Iterator[page.Page]:
    """Yield a page for every study with runs."""
    for case in material.cases:
        name = case.study.name
        yield page.Page(
            page.study_page(name),
            "study.html",
            f"Study {name}: {case.registration.title}",
            f"study {name}",
            {
                **_context(case),
                "findings": at(material.findings, "study", name),
                **head(material.cases, case, "outcomes", page.study_page),
            },
        )


def _absent(case: Case) -> dict[str, str]:
    trained = any(case.study.has(name) for name in OF_TRAINING)
    wanted = {name: why for name, why in WORDS["tables"].items() if trained or name not in OF_TRAINING}
    if any(cell.settings.registers for cell in case.book.plan.cells):
        wanted |= dict.fromkeys(wanted.keys() & {"checkpoints", "groups", "groups_summary"}, LEFT_OUT)
    return {name: why for name, why in wanted.items() if not case.study.has(name)}


def _context(case: Case) -> dict[str, Any]:
    study = case.study
    runs = study.rows("runs")
    planned = sorted(case.book.plan.cells, key=lambda cell: cell.tier)
    shared = {
        name: value
        for name, value in (planned[0].fixed if planned else {}).items()
        if all(cell.fixed.get(name) == value for cell in planned)
    }
    cells = [_cell(case, cell, runs, shared) for cell in planned]
    placed = {name for cell in cells for name in cell["runs"]}
    manifest = study.manifest
    return {
        "registration": case.registration,
        "registration_target": page.registration_page(case.registration.name),
        "outcomes": outcome_tables(case),
        "charts": [*pictures(case).values(), *_charts(case)],
        "cells": cells,
        "shared": shared,
        "others": [
            (run, page.run_page(study.name, run["run_id"])) for run in runs if run["run_id"] not in placed
        ],
        "runs": len(runs),
        "deciding": sum(run["role"] in case.book.plan.roles for run in runs),
        "tables": [
            (table.name, table.meaning, manifest.tables[table.name].rows, study.sha256(table.name))
            for table in study.tables
        ],
        "absent": _absent(case),
        "not_decided": [d for d in case.decide_all() if d.verdict in ("not_run", "not_evaluable")],
        "manifest": manifest,
        "probe": page.probe_page(study.name),
        "luck": page.luck_page(study.name),
    }


def _charts(case: Case) -> list[Chart]:
    hypotheses = (d for d in case.decide_all() if d.kind == "hypothesis")
    drawn = (seed_differences(estimate_of(case, d)) for d in hypotheses)
    return list(islice((chart for chart in drawn if chart), CHARTS))


def _cell(case: Case, cell: Cell, runs: Sequence[Row], shared: Mapping[str, Fixed]) -> dict[str, Any]:
    """Return a line of the registered matrix with its runs; some roles decide nothing."""
    beside = cell.role if cell.role and cell.role not in case.book.plan.roles else ""
    roles = (beside,) if beside else case.book.plan.roles
    runs_there = [run for run in runs if run["role"] in roles and cell.holds(*place_of(run))]
    there = {(run["arm"], run["seed"]) for run in runs_there}
    return {
        "cell": cell,
        "beside": beside,
        "runs": [run["run_id"] for run in runs_there],
        "by_arm": {
            arm: [(r["seed"], r["run_id"], page.run_page(case.study.name, r["run_id"])) for r in of_arm]
            for arm in cell.arms
            if (of_arm := sorted((r for r in runs_there if r["arm"] == arm), key=lambda r: r["seed"]))
        },
        "of": len(cell.arms) * len(cell.seeds),
        "absent": [f"{arm} {seed}" for arm in cell.arms for seed in cell.seeds if (arm, seed) not in there],
        "fixed": {name: value for name, value in cell.fixed.items() if name not in shared},
    }
