"""A study's gradient probe: ratios, traces, weights, and the exact condition task by task."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolkit.decisions.case import Case
from toolkit.registers.arrow import Row
from toolkit.registers.query import ask
from toolkit.registers.schema import TABLES
from toolkit.site.charts.estimates import condition_by_task, ratios
from toolkit.site.charts.plots import Dot, with_interval
from toolkit.site.charts.svg import Chart
from toolkit.site.drawings import head, probe_words, rules_reading
from toolkit.site.environment import WORDS
from toolkit.site.material import Material
from toolkit.site.page import Page, probe_page
from toolkit.site.registers import rows_held

SUMMARY = "probe"
BASE = "base"
EFFECTIVE = "effective_sample_size"
EFFECTIVE_SIZE = """
SELECT trajectory, step, scored,
  sum(list_sum(weights)) ** 2 / nullif(sum(list_dot_product(weights, weights)), 0)
FROM probe_gram WHERE noise = 'outcome' GROUP BY ALL"""
TRACES = (
    *("trace_paired", "trace_independent", "trace_stratified", "trace_within_paired"),
    *("trace_within_independent", "mean_norm_paired", "mean_norm_independent", "cosine"),
)
SCORED = (
    *("coordinates", "clean_rollouts", "clean_successes", "diagnostic_rollouts", "masked_rollouts"),
    *("weight_mean", "weight_min", "weight_max", "reference_tokens"),
)
DESIGNS = ("paired", "independent", "stratified")
# Tables of single tasks → the columns that the page shows.
OF_TASKS = {
    "probe_clean_tasks": ("task_id", "successes", "condition_left", "condition_right"),
    "probe_diagnostic_tasks": ("task_id", *(f"squared_norms_{design}" for design in DESIGNS)),
}
Place = tuple[str, int, str]
Key = tuple[Place, str, str, str]
RATIOS = WORDS["probe"]["ratios"]


def pages(material: Material) -> Iterator[Page]:
    """Yield the probe page of every study that has a probe, or whose rules read one."""
    for case in material.cases:
        rules = rules_reading(case, [t.name for t in TABLES.values() if t.name.startswith(SUMMARY)])
        if rules or case.study.has(SUMMARY):
            context: dict[str, Any] = {
                **head(material.cases, case, "gradient probe", probe_page),
                "rules": rules,
                "measured": case.study.has(SUMMARY),
            }
            if case.study.has(SUMMARY):
                held = rows_held(case.study, "probe_intervals")
                context |= _measured(case, material.probe_figures.get(case.study.name, held))
            yield Page(
                probe_page(case.study.name),
                "probe.html",
                f"Gradient probe ({case.study.name})",
                "probe",
                context,
            )


def _measured(case: Case, figures: Sequence[Row]) -> dict[str, Any]:
    rows = case.study.rows(SUMMARY)
    by_key = {(_place(r), r["noise"], r["estimator"], r["figure"]): r for r in figures}
    texts = {
        key: with_interval(r["value"], r["low"], r["high"])
        for key, r in by_key.items()
        if r["value"] is not None
    }
    places = sorted({_place(row) for row in rows}, key=_order)
    named = _registered(case, places)
    first = [checkpoint for checkpoint in places if checkpoint in named]
    scored = list(dict.fromkeys(checkpoint[2] for checkpoint in places))
    shown = first or places
    return {
        "checkpoints": len(places),
        "registered": len(first),
        "unmeasured": [f"{t}@{s}" for t, s, _ in sorted(named - set(places), key=_order)],
        "scored": scored,
        "tasks": {noise: _tasks(figures, noise) for noise in ("outcome", "transition")},
        "charts": {name: _charts(case, [p for p in shown if p[2] == name], by_key) for name in scored},
        "ratio_names": [[words] for words, *_ in RATIOS],
        "ratios": {name: _ratio_rows([p for p in shown if p[2] == name], texts) for name in scored},
        "others": {
            name: _ratio_rows([p for p in places if p[2] == name and p not in shown], texts)
            for name in scored
        },
        "drifts": _drifts(case, shown),
        "traces": _traces(rows, shown),
        "weights": _weights(case, shown),
        "of_tasks": _of_tasks(case, shown[0]),
        "interval_words": probe_words(case, [r for r in figures if r["figure"] == "condition_ratio"]),
        "ratio_words": probe_words(case, [r for r in figures if r["figure"] == "trace_ratio"]),
    }


def _place(row: Mapping[str, Any]) -> Place:
    return row["trajectory"], row["step"], row["scored"]


def _named(checkpoint: Place) -> str:
    return f"{checkpoint[0]}@{checkpoint[1]}"


def _order(checkpoint: Place) -> tuple[bool, bool, str, int]:
    return checkpoint[2] != "all", checkpoint[0] != BASE, checkpoint[0], checkpoint[1]


def _registered(case: Case, places: Iterable[Place]) -> set[Place]:
    """Return the checkpoints that rules name; where they name no coordinates, those that were scored."""
    scored = {checkpoint[2] for checkpoint in places}
    named = set()
    for endpoint in case.book.endpoints.values():
        if endpoint.register == SUMMARY and endpoint.by == "checkpoint":
            on = {endpoint.where["scored"]} if "scored" in endpoint.where else scored
            named |= {(*checkpoint, coordinates) for checkpoint in endpoint.checkpoints for coordinates in on}
    return named


def _tasks(figures: Iterable[Row], noise: str) -> int | None:
    counted = Counter(row["tasks"] for row in figures if row["noise"] == noise and row["tasks"])
    return counted.most_common(1)[0][0] if counted else None


def _charts(case: Case, places: Sequence[Place], by_key: Mapping[Key, Row]) -> list[Chart]:
    drawn = []
    for words, noise, figure in WORDS["probe"]["drawn"]:
        rows = [by_key[key] for p in places if (key := (p, noise, "MC", figure)) in by_key]
        points = tuple(
            Dot((r["trajectory"], r["step"]), r["value"], r["low"], r["high"])
            for r in rows
            if r["value"] is not None
        )
        if chart := ratios(words, points, probe_words(case, rows)):
            drawn.append(chart)
    return drawn


def _ratio_rows(places: Iterable[Place], texts: Mapping[Key, str]) -> list[tuple[str, ...]]:
    return [(_named(p), *(texts.get((p, n, e, f), "-") for _, n, e, f in RATIOS)) for p in places]


def _drifts(case: Case, places: Sequence[Place]) -> list[dict[str, Any]]:
    """Return one table a noise: drift ratios of checkpoints, by groups in a step, as a trainer takes it."""
    rows = rows_held(case.study, "probe_drift")
    texts = {
        (_place(r), r["noise"], r["prompts_per_step"]): with_interval(r["corrected"], r["low"], r["high"])
        for r in rows
        if r["estimator"] == "SW" and r["corrected"] is not None
    }
    batches = sorted({r["prompts_per_step"] for r in rows})
    return [
        {
            "noise": noise,
            "columns": ["checkpoint", "scored", *(f"B = {batch}" for batch in batches)],
            "rows": [(_named(p), p[2], *(texts.get((p, noise, b), "-") for b in batches)) for p in places],
        }
        for noise in dict.fromkeys(r["noise"] for r in rows)
    ]


def _traces(rows: Iterable[Row], places: Sequence[Place]) -> list[dict[str, Any]]:
    """Return one table a noise and estimator: traces of the registered checkpoints by design."""
    by_key = {(_place(row), row["noise"], row["estimator"]): row for row in rows}
    tables = []
    for noise, estimator in dict.fromkeys((row["noise"], row["estimator"]) for row in by_key.values()):
        held = [(p, by_key[p, noise, estimator]) for p in places if (p, noise, estimator) in by_key]
        kept = [name for name in TRACES if any(row[name] is not None for _, row in held)]
        if any(row["condition_left"] is not None for _, row in held):
            kept = ["condition_left", "condition_right", *kept]
        if held:
            tables.append({"noise": noise, "estimator": estimator, **_table(held, kept)})
    return tables


def _weights(case: Case, places: Sequence[Place]) -> dict[str, Any]:
    """Return what was scored at registered checkpoints, with effective sample sizes where they are had."""
    rows = rows_held(case.study, "probe_checkpoints")
    sizes = ask(case.study, EFFECTIVE_SIZE).rows if rows and case.study.has("probe_gram") else ()
    by_place = {(trajectory, step, scored): size for trajectory, step, scored, size in sizes}
    held = {_place(row): {**row, EFFECTIVE: by_place.get(_place(row))} for row in rows}
    is_known = any(size is not None for size in by_place.values())
    return _table([(p, held[p]) for p in places if p in held], (*SCORED, EFFECTIVE) if is_known else SCORED)


def _of_tasks(case: Case, checkpoint: Place) -> dict[str, Any]:
    """Return both tables of single tasks at a checkpoint, the first registered one."""
    where = _named(checkpoint)
    of = {name: [r for r in rows_held(case.study, name) if _place(r) == checkpoint] for name in OF_TASKS}
    sides = tuple(
        (str(r["task_id"]), float(r["condition_left"]), float(r["condition_right"]))
        for r in of["probe_clean_tasks"]
    )
    return {
        "where": where,
        "chart": condition_by_task(f"{where} ({checkpoint[2]} coordinates)", "score²", sides),
        **{
            name: {"columns": columns, "rows": [tuple(_figure(r[c]) for c in columns) for r in of[name]]}
            for name, columns in OF_TASKS.items()
        },
    }


def _table(held: Iterable[tuple[Place, Mapping[str, Any]]], columns: Sequence[str]) -> dict[str, Any]:
    rows = [(_named(p), p[2], *(_figure(row[name]) for name in columns)) for p, row in held]
    return {"columns": ["checkpoint", "scored", *columns], "rows": rows}


def _figure(value: object) -> object:
    """Return a figure with five digits; counts and texts stay what they are."""
    return f"{value:.5g}" if isinstance(value, float) else value
