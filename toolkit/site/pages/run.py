"""A page a run: its row, its evaluations, its episodes, and the rules that read it."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlencode

from toolkit.decisions.case import Case, quoted
from toolkit.decisions.decision import Decision
from toolkit.registers.arrow import Row
from toolkit.registers.columns import PHASES
from toolkit.registers.study import Study
from toolkit.rules.plan import place_of
from toolkit.rules.values import fixed
from toolkit.site.charts.curves import success_by_step, training_steps
from toolkit.site.material import Material
from toolkit.site.page import Page, counts_of, run_page, slug
from toolkit.site.registers import carries, rows_by_run

TABLES = ("evaluations", "luck_share_summary", "groups_summary", "launches", "steps")
SET = ("phase", "pool", "regime")
COUNTS = {
    "step": "step",
    "episodes": "episodes",
    "successes": "true successes",
    "score": "score, added up",
    "missing": "without an outcome",
    "excluded": "left out",
    "observed_successes": "observed",
    "exposed": "met a fault",
    "recovered": "of these succeeded",
    "budget_exceeded": "out of budget",
    "calls": "calls",
}
SHARES = ("step", "regime", "target", "luck_share", "interval_low", "interval_high", "tasks_defined", "tasks")
# Tables with one file for all runs, whose rows of a run its page shows where somebody asks for them.
OF_ALL_RUNS = ("runs", "launches", "steps")


@dataclass(frozen=True)
class File:
    """A file that holds rows of a run."""

    table: str  # the table that it is of
    name: str  # its path within the repository
    sha256: str  # its digest
    bytes: int  # its size
    rows: int  # its rows, those of other runs included
    is_carried: bool  # whether the site carries it

    @property
    def entry(self) -> Row:
        """What the browser needs to read it."""
        return {"file": self.name, "sha256": self.sha256, "bytes": self.bytes, "rows": self.rows}


def pages(material: Material) -> Iterator[Page]:
    """Yield a page for every run of every study."""
    for case in material.cases:
        tables = {table: rows_by_run(case.study, table) for table in TABLES}
        files, readers = files_by_run(case.study), _readers(case)
        runs = case.study.rows("runs")
        partners: dict[Any, list[Row]] = defaultdict(list)
        for run in runs:
            partners[_pair(run)].append(run)
        played = material.played.get(case.study.name, {})
        for run in runs:
            name = run["run_id"]
            rows = {table: by_run.get(name, []) for table, by_run in tables.items()}
            context = _context(case, run, rows, files.get(name, []), readers.get(name, []))
            others = [(r["run_id"], r["arm"]) for r in partners[_pair(run)] if r is not run]
            context["partners"] = [(*other, run_page(case.study.name, other[0])) for other in others]
            context["played"], context["chosen"] = played.get(name, ""), material.played_how
            context["script_name"] = slug(name)
            yield Page(
                run_page(case.study.name, name),
                "run.html",
                f"Run {name[:80]} ({case.study.name})",
                f"study {case.study.name}",
                context,
                ("episodes",) if context["carried"] else (),
            )


def files_by_run(study: Study) -> Mapping[str, list[File]]:
    """Return by run the files that hold its rows alone, and those of `OF_ALL_RUNS`."""
    files: dict[str, list[File]] = defaultdict(list)
    runs = [row["run_id"] for row in study.rows("runs")]
    for table in study.tables:
        names = study.files(table.name)
        for name, digest in names.items():
            entry = study.manifest.files[name]
            file = File(
                *(table.name, name, digest, entry.bytes, entry.rows or 0), carries(study, table.name, name)
            )
            if len(names) == 1 and table.name in OF_ALL_RUNS:
                for run in runs:
                    files[run].append(file)
            else:
                files[PurePosixPath(name).stem].append(file)
    return files


def _readers(case: Case) -> Mapping[str, list[Decision]]:
    """Return by run the rules that read it, at its evaluations or at checkpoints of it."""
    runs = case.study.rows("runs")
    trajectories = runs_of_trajectories(case)
    read_by: dict[str, set[str]] = {}
    for name, endpoint in case.book.endpoints.items():
        if endpoint.by == "checkpoint":
            read_by[name] = {trajectories[t] for t, _ in endpoint.checkpoints if t in trajectories}
        elif endpoint.by != "row":
            deciding = case.book.plan.deciding_runs(endpoint, runs)
            read_by[name] = {run for run in deciding.values() if isinstance(run, str)}
    readers: dict[str, list[Decision]] = defaultdict(list)
    for decision in case.decide_all():
        for run in set().union(*(read_by.get(name, ()) for name in decision.endpoints_read)):
            readers[run].append(decision)
    return readers


def _context(
    case: Case,
    run: Mapping[str, Any],
    rows: Mapping[str, list[Any]],
    files: Sequence[File],
    readers: Sequence[Decision],
) -> dict[str, Any]:
    study, name = case.study, run["run_id"]
    evaluations = rows["evaluations"]
    episodes = next((file for file in files if file.table == "episodes"), None)
    shown_here = episodes is not None and episodes.is_carried
    points = _points(evaluations)
    return {
        "study": study.name,
        "is_summary": study.is_summary,
        "run": run,
        "decides": run["role"] in case.book.plan.roles,
        "readers": [d for d in readers if d.verdict != "not_run"],
        "would_read": [d for d in readers if d.verdict == "not_run"],
        "chart_drawn": success_by_step(points, name[:80]) if points else None,
        "sets": _sets(evaluations, linked=shown_here),
        "columns": [
            (column, title) for column, title in COUNTS.items() if any(column in row for row in evaluations)
        ],
        **steps_shown(rows["steps"], rows["launches"]),
        "groups": rows["groups_summary"],
        "luck": [[_shown(row.get(column)) for column in SHARES] for row in rows["luck_share_summary"]],
        "luck_columns": [column.replace("_", " ") for column in SHARES],
        "files": files,
        "carried": {file.table for file in files if file.is_carried},
        "registers": {
            "study": study.name,
            "run": name,
            "files": {f.table: f.entry for f in files if f.is_carried and f.table not in OF_ALL_RUNS},
        },
        "has_episodes": study.has("episodes"),
        "file": episodes,
        "can_replay": run.get("specification") is not None
        and study.has("checkpoints")
        and episodes is not None,
        "episodes_query": f"SELECT * FROM episodes WHERE run_id = {quoted(name)}",
        "run_query": f"SELECT * FROM runs WHERE run_id = {quoted(name)}",
    }


def _pair(run: Row) -> tuple[object, ...]:
    return *place_of(run)[:2], run["seed"]


def _sets(evaluations: Sequence[Row], *, linked: bool) -> list[Row]:
    sets: dict[tuple[str, ...], list[Row]] = {}
    for row in evaluations:
        counts = [row[column] for column in COUNTS if column in row]
        sets.setdefault(tuple(row[name] for name in SET), []).append({"counts": counts, "rate": _rate(row)})
    return [
        {
            "id": counts_of(*key),
            "name": " ".join(key).replace("_", " "),
            "fragment": urlencode(dict(zip(SET, key, strict=True))) if linked else "",
            "rows": rows,
        }
        for key, rows in sets.items()
    ]


def _rate(row: Row) -> str:
    if "successes" in row:
        return f"{row['successes'] / row['episodes']:.1%}"
    return f"{row['score'] / row['episodes']:.4g}"


def _points(evaluations: Sequence[Row]) -> tuple[tuple[str, int, int, int], ...]:
    """Return counts by set and step; a periodic set goes by its regime, and its pool where it takes that."""
    pools = {phase: {row["pool"] for row in evaluations if row["phase"] == phase} for phase in PHASES}

    def name(row: Row) -> str:
        parts = [row["regime"].replace("_", " ")]
        parts += [row["pool"]] if len(pools[row["phase"]]) > 1 else []
        parts += [] if row["phase"] == PHASES[0] else [row["phase"]]
        return ", ".join(parts)

    ordered = sorted(
        evaluations, key=lambda row: (PHASES.index(row["phase"]), row["regime"], row["pool"], row["step"])
    )
    # What has no successes has scores, of whatever range.
    drawn = [row for row in ordered if "successes" in row]
    return tuple((name(row), row["step"], row["successes"], row["episodes"]) for row in drawn)


def steps_shown(rows: Sequence[Row], launches: Sequence[Row]) -> dict[str, Any]:
    """Return what a page shows of training steps: charts; the rows are read where somebody asks for them."""
    taken = _seconds(launches)
    steps = sorted(({**row, **taken.get(row["step"], {})} for row in rows), key=lambda row: row["step"])
    return {"step_charts": training_steps(steps), "steps": len(steps)}


def _seconds(launches: Sequence[Row]) -> dict[int, Row]:
    """Return by step how long it took, and from when to when its rollouts did; the latest attempt counts."""
    return {
        launch["from_step"] + number: {"seconds": seconds, "begun": 0.0, "generation": generation}
        for launch in sorted(launches, key=lambda row: row["attempt"])
        for number, (seconds, generation) in enumerate(
            zip(launch.get("step_seconds") or (), launch.get("generation_seconds") or (), strict=False), 1
        )
    }


def _shown(value: Any) -> Any:
    if isinstance(value, float):
        return fixed(value, 4)
    return value.replace("_", " ") if isinstance(value, str) else value


_SAID = re.compile(r"Trajectory (\S{1,60}) is (.{1,400})", re.DOTALL)
_BY_NAME = re.compile(r"the ([\w.-]{1,100}) run\b")


def runs_of_trajectories(case: Case) -> dict[str, str]:
    """Return run by trajectory, as far as the study and its registration tell.

    A study that is made here names a trajectory after its run. Elsewhere an amendment says it in words:
    "Trajectory B is C2 paired seed 1 ..." names the place of a deciding run, "Trajectory A is the gate-1 run"
    the beginning of a run's name. A sentence that fits no run, or two, tells nothing.
    """
    runs = [run for run in case.study.rows("runs") if run["role"] in case.book.plan.roles]
    run_of = {str(run["run_id"]): str(run["run_id"]) for run in runs}
    for amendment in case.registration.amendments:
        for change in amendment.changes:
            sentence = _SAID.match(change)
            if sentence and (run := _meant(sentence[2], runs)):
                run_of[sentence[1]] = run
    return run_of


def _meant(words: str, runs: Sequence[Row]) -> str:
    """Return the one run that a sentence begins with; empty where it is none, or could be two."""
    by_name, names = _BY_NAME.match(words), []
    for run in runs:
        condition, _, arm, seed = place_of(run)
        place = rf"{re.escape(f'{condition} {arm} seed {seed}')}\b"
        if _plain(run["run_id"]).startswith(_plain(by_name[1])) if by_name else re.match(place, words):
            names.append(str(run["run_id"]))
    return names[0] if len(names) == 1 else ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
