"""Tamperings with rows: what follows from them, the rows themselves, and what lies beside them."""

import operator
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.tampering.forger import Forger
from tests.tampering.tampering import LARGE, Tampering, core, small
from toolkit.decisions.engine import inputs_sha256
from toolkit.lab.training.checkpoint import checkpoint_sha256
from toolkit.registers.arrow import Row

PAIRED, INDEPENDENT = "c2-paired-s0", "c2-independent-s0"
UNPROBED = "c2-paired-s110"
REPLAY = "only playing it again shows it"
# Positions in the large study: of an evaluation in H2a's curve, and of a failed episode of its paired run.
GAINED, FAILED = 437, 1


def more(by: float = 1) -> Callable[[Any], Any]:
    """Return what adds to a number."""
    return lambda old: old + by


def one_value(table: str, at: int, part: str = "", **values: Any) -> Callable[[Forger], object]:
    """Return what changes one row of a table, and has the stored decisions fit."""
    return lambda forger: forger.set(table, at, part, **values).seal().fit_decisions()


def of_rule(rule: str, **values: Any) -> Callable[[Forger], object]:
    """Return what changes a stored decision."""

    def change(rows: list[Row]) -> None:
        next(row for row in rows if row["rule"] == rule).update(values)

    return lambda forger: forger.edit("decisions", change).seal()


def pairing_gains(forger: Forger) -> None:
    """Raise 15 counts of `evaluations`, and the stored decisions and interval with them: the issue's own."""

    def change(rows: list[Row]) -> None:
        meant = [
            row
            for row in rows
            if (row["condition"], row["arm"], row["regime"], row["phase"])
            == ("C2", "paired", "faults_p025", "periodic")
            and row["seed"] in (0, 1, 2)
            and row["step"]
        ]
        for row in meant:
            gain = min(20, row["episodes"] - row["successes"])
            row["successes"] += gain
            row["observed_successes"] += gain
            row["exposed"] = max(row["exposed"], row["successes"])
        assert len(meant) == 15

    forger.edit("evaluations", change).seal().fit_decisions()


def without_an_episode(forger: Forger) -> None:
    forger.edit("episodes", lambda rows: rows.pop(5), PAIRED).seal().fit_decisions()


def swapped(forger: Forger) -> None:
    """Put the episodes of one run into the file of another, under their own names."""
    mine, theirs = (forger.rows("episodes", run) for run in (PAIRED, INDEPENDENT))
    forger.write("episodes", theirs, PAIRED)
    forger.write("episodes", mine, INDEPENDENT)
    forger.seal()
    inputs = inputs_sha256(forger.study)  # nothing is decided on such files, so that the verdicts stay
    forger.edit("decisions", lambda rows: [row.update(inputs_sha256=inputs) for row in rows]).seal()


def relabelled(rows: list[Row], run: str) -> list[Row]:
    return [row | {"run_id": run} for row in rows]


def swapped_and_relabelled(forger: Forger) -> None:
    mine, theirs = (forger.rows("episodes", run) for run in (PAIRED, INDEPENDENT))
    forger.write("episodes", relabelled(theirs, PAIRED), PAIRED)
    forger.write("episodes", relabelled(mine, INDEPENDENT), INDEPENDENT)
    forger.seal().fit_decisions()


def arms_exchanged(forger: Forger) -> None:
    """Have two runs change names wherever they stand, with everything that follows."""
    for table in ("episodes", "groups", "adapters"):
        mine, theirs = (forger.rows(table, run) for run in (PAIRED, INDEPENDENT))
        forger.write(table, relabelled(theirs, PAIRED), PAIRED)
        forger.write(table, relabelled(mine, INDEPENDENT), INDEPENDENT)
    forger.fit_summaries(PAIRED, INDEPENDENT)
    forger.fit_decisions()


def flipped(forger: Forger) -> None:
    """Turn a failure into a success, and fit everything that follows."""

    def change(rows: list[Row]) -> None:
        assert not rows[FAILED]["true_success"]
        rows[FAILED].update(true_success=True, observed_reward=True, world_changed=True, ended="finished")

    forger.edit("episodes", change, PAIRED).fit_summaries(PAIRED).fit_decisions()


def invented(forger: Forger) -> None:
    """Make a run out of another one's outcomes, and fit everything that follows."""
    better = forger.rows("episodes", INDEPENDENT)
    forger.write("episodes", relabelled(better, PAIRED), PAIRED)
    forger.fit_summaries(PAIRED).fit_decisions()


def of_run(rows: list[Row]) -> Row:
    return next(row for row in rows if row["run_id"] == PAIRED)


def moved(by: timedelta) -> Callable[[Forger], object]:
    def move(rows: list[Row]) -> None:
        for row in rows:
            row["launched_at"] += by
            row["ended_at"] += by

    return lambda forger: forger.edit("launches", move).seal()


def without_a_run(forger: Forger) -> None:
    """Have a study say that a run of the matrix was never complete."""
    forger.edit("runs", lambda rows: of_run(rows).update(status="INCOMPLETE")).seal().fit_decisions()


def without_any_trace(forger: Forger) -> None:
    """Leave a run out, wherever it stands."""
    for name, table in forger.study.manifest.tables.items():
        column = next((each for each in ("run_id", "trajectory") if each in table.columns), "")
        has_file = f"{name}/{PAIRED}.parquet" in table.files
        if column and (has_file or len(table.files) == 1):
            forger.drop(name, PAIRED if has_file else "", lambda row, of=column: row[of] == PAIRED)
    forger.seal().fit_decisions()


def adapter(forger: Forger) -> None:
    """Change a byte of an adapter."""

    def change(old: str) -> str:
        raw = bytearray(b64decode(old))
        raw[-1] ^= 1
        return b64encode(raw).decode()

    forger.set("adapters", 1, PAIRED, adapter=change).seal().fit_decisions()


def smallest_first(advantages: list[float]) -> list[float]:
    at = min(range(len(advantages)), key=lambda each: abs(advantages[each]))
    return [*advantages[:at], advantages[at] + 1e-3, *advantages[at + 1 :]]


def nudged(old: list[float]) -> list[float]:
    return [old[0] + 1e-9, *old[1:]]


def checkpoint(forger: Forger) -> None:
    """Change a parameter, and the hash that its row names."""

    def change(rows: list[Row]) -> None:
        rows[2]["parameters"] = nudged(rows[2]["parameters"])
        rows[2]["sha256"] = checkpoint_sha256(rows[2])

    forger.edit("checkpoints", change, UNPROBED).seal().fit_decisions()


def extra_file(forger: Forger) -> None:
    (forger.folder / "notes.txt").write_text("H2a passed.\n", encoding="utf-8")


def not_resealed(forger: Forger) -> None:
    forger.set("evaluations", 0, successes=0, observed_successes=0)


def card(forger: Forger) -> None:
    path = forger.folder / "README.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nH2a: pass.\n", encoding="utf-8")
    forger.seal(documents=["README.md"])


def task(forger: Forger) -> None:
    forger.set(
        "task_pools", 3, "validation-", prompt=lambda old: old.replace(" ", "  ", 1)
    ).seal().fit_decisions()


ROWS = (
    core("a count of `evaluations`, no hash recomputed", not_resealed, "evaluations"),
    core(
        "a count of `evaluations`",
        one_value("evaluations", 3, observed_successes=more(-1), successes=more(-1)),
        "evaluations",
        "episodes",
    ),
    Tampering(
        "15 counts of `evaluations`, decisions and H2a's interval",
        LARGE,
        pairing_gains,
        ("evaluations", "episodes"),
        drawn=(PAIRED, "evaluations", GAINED),
    ),
    small(
        "a count of `groups_summary`",
        one_value("groups_summary", 2, zero_variance=more(-1)),
        "groups",
        rule="H1a",
    ),
    small(
        "a luck share of `luck_share_summary`",
        one_value("luck_share_summary", 0, luck_share=more(0.01)),
        "luck_share",
        rule="H1a",
    ),
    small(
        "a trace of `probe`", one_value("probe", 0, trace_paired=lambda old: old * 0.5), "probe", rule="H1b"
    ),
    small(
        "an end of `probe_intervals`",
        one_value("probe_intervals", 0, low=more(-0.01)),
        "probe_intervals",
        rule="H1b",
    ),
    small(
        "a task of `probe_clean_tasks`",
        one_value("probe_clean_tasks", 0, successes=lambda old: old - 1 if old else 1),
        "probe_clean_tasks",
        rule="H1b",
    ),
    small(
        "a task of `probe_diagnostic_tasks`",
        one_value("probe_diagnostic_tasks", 0, squared_norms_paired=more(0.1)),
        "probe_diagnostic_tasks",
        rule="H1b",
    ),
    small(
        "a row of `probe_checkpoints`",
        one_value("probe_checkpoints", 0, clean_successes=more()),
        "probe_checkpoints",
        rule="H1b",
    ),
    core("a stored verdict", of_rule("H2a", verdict="pass"), "H2a"),
    small("an end of a stored interval", of_rule("H2a", low=0.001), "H2a", "c2_auc_95"),
    core("stored decisions of other rows", of_rule("H2a", inputs_sha256="0" * 64), "H2a"),
    core("a count of `runs`", one_value("runs", 0, episodes=more(5)), "runs"),
    small("the status of a run", without_a_run, "status", "runs"),
    core("an episode deleted", without_an_episode, "episodes", "evaluations"),
    core(
        "an episode deleted, summaries and decisions made to fit",
        lambda forger: (without_an_episode(forger), forger.fit_summaries(PAIRED).fit_decisions()),
        "episodes",
    ),
    small(
        "an outcome of an episode",
        one_value("episodes", 0, PAIRED, true_success=operator.not_, observed_reward=operator.not_),
        "episodes",
        "evaluations",
    ),
    small(
        "an evaluation left out",
        lambda forger: forger.edit("evaluations", lambda rows: rows.pop(3)).seal().fit_decisions(),
        "evaluations",
    ),
    small(
        "a run left out everywhere", without_any_trace, limit="its rules are then not evaluable, and say why"
    ),
    small(
        "a table of `luck_share`",
        one_value("luck_share", 0, PAIRED, true_successes=lambda old: [not old[0], *old[1:]]),
        "luck_share",
        rule="H1a",
    ),
    small(
        "a number of `probe_gram`",
        one_value("probe_gram", 0, "base", gram=lambda old: [old[0] * 1.01, *old[1:]]),
        "probe",
        rule="H1b",
    ),
    small(
        "a schedule of `schedules`", one_value("schedules", 0, schedule_seed=lambda old: old ^ 1), "schedule"
    ),
    small("a byte of an adapter", adapter, "adapter"),
    small(
        "the specification of a launch", one_value("launches", 0, specification_sha256="0" * 64), "launches"
    ),
    small("the files of two runs exchanged", swapped, "episodes"),
    small(
        "the files of two runs exchanged, their rows relabelled",
        swapped_and_relabelled,
        "episodes",
        "evaluations",
    ),
    core("paired and independent run exchanged everywhere", arms_exchanged, "groups", "probe"),
    small(
        "an advantage of a training group",
        one_value("groups", 0, PAIRED, advantages=smallest_first),
        "advantages",
        "groups",
    ),
    small(
        "a schedule seed of a training group",
        one_value("groups", 0, PAIRED, schedule_seeds=lambda old: [old[0] ^ 1] * len(old)),
        "schedule_seeds",
        "groups",
    ),
    small(
        "a schedule seed of an episode",
        one_value("episodes", 0, PAIRED, schedule_seed=lambda old: old ^ 1),
        "schedule",
    ),
    Tampering(
        "a parameter of a checkpoint, and its hash",
        LARGE,
        checkpoint,
        ("checkpoint",),
        drawn=(UNPROBED, "checkpoints", 2),
        limit=REPLAY,
    ),
    small("a task of a pool", task, "task", "pool"),
    small("a file that nothing declares", extra_file, "notes.txt"),
    small("a sentence of the card", card, limit="prose follows from no row"),
    core("launches moved before the freeze", moved(timedelta(days=-2)), "freeze", "registration"),
    small(
        "launches moved to another day",
        moved(timedelta(hours=5)),
        limit="a launch time is the word of the machine that ran",
    ),
    Tampering(
        "an outcome of an episode, everything made to fit",
        LARGE,
        flipped,
        ("episodes",),
        drawn=(PAIRED, "episodes", FAILED),
        limit=REPLAY,
    ),
    Tampering(
        "all episodes of a run invented, everything made to fit",
        LARGE,
        invented,
        ("episodes",),
        drawn=(PAIRED, "episodes", 7),
        limit=REPLAY,
    ),
)
