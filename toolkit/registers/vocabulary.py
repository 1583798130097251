"""Words and columns that several tables of a register share."""

from __future__ import annotations

from toolkit.registers.columns import Parent, count, text

ARMS = ("clean", "paired", "independent", "blocking", "blocking_paired")
REGIMES = (
    "clean",
    "faults_p010",
    "faults_p025",
    "faults_p025_outage_free",
    "faults_p025_outage_heavy",
    "held_out_types",
    "challenge",
    "flips_q005",
    "flips_q010",
)
POOLS = ("diagnostic", "diagnostic_128", "test", "train", "validation")
ROLES = ("pilot", "primary", "reference", "replication")
BATTERIES = ("registered", "learning", "small")
PHASES = ("periodic", "final")

WORDS = {"arm": ARMS, "regime": REGIMES, "pool": POOLS}
"""Columns whose words a registration may declare, with those of the back office that hold otherwise."""

RUN = text("run_id", "The run that produced the row.")
CELL = (
    text("condition", "Condition of the run: what it works under, such as the noise of training."),
    text(
        "arm",
        "Arm of the run: what is compared, such as how a group's schedules are drawn.",
        choices=ARMS,
    ),
    count("seed", "Seed of the run; runs of two arms with one seed are a pair."),
)
OF_RUN = Parent("runs", ("run_id",), same=("condition", "arm", "seed"))
OF_RUN_ALONE = Parent("runs", ("run_id",))
