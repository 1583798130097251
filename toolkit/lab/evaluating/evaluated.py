"""What an evaluation found: its registers, and its figures.

Every regime is a run of its own, in the registers' words: its condition is the noise that the policy met.
Nothing of it was registered, and the manifest says so: it names the digest of the evaluation's identity in
place of a registration's, so that no rule can be decided on it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from toolkit.canonical import canonical
from toolkit.estimators import task_uncertainties, taskwise
from toolkit.lab.evaluating.folder import EPISODES, LUCK_SHARE
from toolkit.lab.play import assemble
from toolkit.noise.regimes import REGIMES
from toolkit.registers import arrow, manifest, row_tables, schema, writer
from toolkit.registers.arrow import Row
from toolkit.registers.manifest import UNREGISTERED
from toolkit.verification import summaries

if TYPE_CHECKING:
    import numpy as np

    from toolkit.documents.runs import (
        EvaluatedSetDocument,
        LuckShareDocument,
        MeasureDocument,
        MeasuresDocument,
        Target,
    )

ARM = "evaluated"
WORDS = {"arm": (ARM,)}
DOCUMENT = "evaluation.json"
LONGEST_NAME = 64
TARGETS: tuple[Target, ...] = ("true_success", "observed_reward")
MEASURES = ("success", "observed", "calls", "exposed")


def study_name(model: str) -> str:
    """Return the name of a model's study: that of the model, in the characters that a study's may have."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", model.rstrip("/").rpartition("/")[2]).strip("-_")
    return (name or "model")[:LONGEST_NAME]


def write_registers(
    folder: Path, study: str, identity: Mapping[str, Any], rows: Mapping[str, Sequence[Row]]
) -> manifest.Manifest:
    """Write an evaluation's study; the same rows give the same bytes."""
    document = (json.dumps(identity, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
    return writer.write_study(
        folder,
        study=study,
        evidence="rows",
        registration=manifest.RegistrationRef(UNREGISTERED, hashlib.sha256(document).hexdigest(), {}),
        files=_files(identity, rows),
        documents={DOCUMENT: document},
        words=WORDS,
    )


def figures(rows: Mapping[str, Sequence[Row]]) -> list[EvaluatedSetDocument]:
    """Return what was found under each regime: rates, calls and exposure, with intervals over tasks."""
    return [
        {
            "regime": regime,
            "pool": episodes[0]["pool"],
            "tasks": len({row["task"] for row in episodes}),
            "episodes": len(episodes),
            **_measured(episodes),
            "ended": dict(sorted(Counter(row["ended"] for row in episodes).items())),
        }
        for regime, episodes in _by_regime(rows[EPISODES]).items()
    ]


def luck_shares(rows: Mapping[str, Sequence[Row]]) -> list[LuckShareDocument]:
    """Return the luck share of each regime and reward; a share is None where the reward never varied."""
    shares: list[LuckShareDocument] = []
    for regime, tables in _by_regime(rows.get(LUCK_SHARE, ())).items():
        measured = {row["target"]: row for row in summaries.luck_share_summary({}, tables, "model")}
        for target in TARGETS:
            row = measured.get(target, {})
            shares.append(
                {
                    "regime": regime,
                    "target": target,
                    "luck_share": row.get("luck_share"),
                    "pooled": row.get("luck_share_pooled"),
                    "low": _plain(row.get("interval_low")),
                    "high": _plain(row.get("interval_high")),
                    "level": summaries.LEVEL,
                    "tasks": len({row["task"] for row in tables}),
                    "tasks_defined": row.get("tasks_defined", 0),
                }
            )
    return shares


def _files(identity: Mapping[str, Any], rows: Mapping[str, Sequence[Row]]) -> dict[str, dict[str, bytes]]:
    """Return Parquet files by table and name: one a regime for what was played, one for what follows."""
    seed, model = int(identity["seed"]), str(identity["model"])
    played = {
        table: {
            f"{table}/{regime}.parquet": _parquet(table, part)
            for regime, part in sorted(_by_regime(rows.get(table, ())).items())
        }
        for table in (EPISODES, LUCK_SHARE)
    }
    tables = _by_regime(rows.get(LUCK_SHARE, ()))
    derived: dict[str, list[Row]] = {"runs": [], "evaluations": [], "luck_share_summary": []}
    for regime, part in _by_regime(rows[EPISODES]).items():
        diagnosed = tables.get(regime, [])
        run = {"run_id": regime, "condition": regime, "arm": ARM, "seed": seed}
        derived["runs"].append(_run_row(run, identity, part, diagnosed))
        played_here = arrow.to_arrow(row_tables.EPISODES, [row | {"run_id": regime} for row in part])
        derived["evaluations"] += summaries.evaluations(run, summaries.count_episodes(regime, played_here))
        derived["luck_share_summary"] += summaries.luck_share_summary(run, diagnosed, model)
    derived["schedules"] = assemble.schedules(
        content for files in played.values() for content in files.values()
    )
    shared = writer.rows_files({table: part for table, part in derived.items() if part})
    return {table: files for table, files in (played | shared).items() if files}


def _run_row(run: Row, identity: Mapping[str, Any], episodes: Sequence[Row], diagnosed: Sequence[Row]) -> Row:
    regime = REGIMES[run["condition"]]
    samples = sum(len(row["true_successes"]) for row in diagnosed)
    return {
        **run,
        # It enters no decision: of the words for a role, the one that says so.
        "role": "replication",
        "fault_rate": Decimal(str(regime.fault_rate)),
        "flip_rate": Decimal(str(regime.flip_rate)),
        "episodes": len(episodes) + samples,
        "status": "COMPLETE",
        "specification": canonical(dict(identity)),
    }


def _parquet(table: str, rows: Sequence[Row]) -> bytes:
    return arrow.parquet_bytes(table, arrow.to_arrow(schema.TABLES[table], rows))


def _by_regime(rows: Iterable[Row]) -> dict[str, list[Any]]:
    regimes: dict[str, list[Any]] = {}
    for row in rows:
        regimes.setdefault(row["regime"], []).append(row)
    return regimes


def _measured(rows: Sequence[Row]) -> MeasuresDocument:
    """Return each measure's mean over episodes, and its interval where there are two tasks at least."""
    import numpy as np

    numbers = sorted({row["task"] for row in rows})
    at = {task: column for column, task in enumerate(numbers)}
    sums = np.zeros((len(MEASURES) + 1, len(numbers)))
    for row in rows:
        exposed = any(row[fault] for fault in row_tables.FAULTS)
        sums[:, at[row["task"]]] += (row["true_success"], row["observed_reward"], row["calls"], exposed, 1)

    def means(counts: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        totals = counts @ sums.T
        return {name: totals[:, column] / totals[:, -1] for column, name in enumerate(MEASURES)}

    plain = {name: float(value[0]) for name, value in means(np.ones((1, len(numbers)))).items()}
    if len(numbers) < taskwise.SMALLEST_SAMPLE:
        return cast("MeasuresDocument", {name: _figure(value, None, None) for name, value in plain.items()})
    uncertain = task_uncertainties(
        means, len(numbers), level=summaries.LEVEL, resamples=summaries.RESAMPLES, rng_seed=summaries.RNG_SEED
    )
    figures = {n: _figure(value, uncertain[n].low, uncertain[n].high) for n, value in plain.items()}
    return cast("MeasuresDocument", figures)


def _plain(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def _figure(value: float, low: float | None, high: float | None) -> MeasureDocument:
    return {"estimate": value, "low": low, "high": high, "level": summaries.LEVEL}
