"""The embedded study's levels beside the paper's, as a table in its card.

    python -m tests.golden.measure_levels            writes the table into cards/embedded.md
    python -m tests.golden.measure_levels --print    prints it

The paper's figures are the ranges over its runs in tab:curves, tab:finals and tab:groups.
"""

import sys
from pathlib import Path

from toolkit.places import find_home
from toolkit.registers.query import asking
from toolkit.registers.study import Study, open_study

CARD = Path(__file__).parents[2] / "cards" / "embedded.md"
START, END = "<!-- levels -->\n", "<!-- /levels -->"

_CURVE = """SELECT successes / evaluations.episodes FROM evaluations JOIN runs USING (run_id)
 WHERE phase = 'periodic'
 AND tier_1 AND runs.condition = '{condition}' AND regime = '{regime}' AND step = {step}"""
_FINAL = """SELECT successes / evaluations.episodes FROM evaluations JOIN runs USING (run_id)
 WHERE phase = 'final'
 AND tier_1 AND runs.condition = '{condition}' AND regime = '{regime}'"""
_GROUPS = """SELECT {figure} FROM groups_summary JOIN runs USING (run_id) WHERE tier_1
 AND runs.condition = '{condition}' AND runs.arm = '{arm}'"""
_LUCK = """SELECT luck_share FROM luck_share_summary JOIN runs USING (run_id) WHERE tier_1
 AND target = 'observed_reward' AND pool = 'diagnostic' AND step = {step}
 AND runs.condition = '{condition}'"""
_EXPOSED = """SELECT exposed / evaluations.episodes FROM evaluations JOIN runs USING (run_id)
 WHERE phase = 'final' AND tier_1 AND runs.condition = 'C2' AND regime = 'faults_p025'"""
_PROBE = """SELECT {figure} FROM probe WHERE estimator = 'MC' AND scored = '{scored}' AND noise = '{noise}'
 AND trajectory LIKE '{trajectory}' AND step = {step}"""
_SIDES, _TRACES = "condition_left / condition_right", "trace_paired / trace_independent"
# The runs of tier 1: the companion's seeds and other arms stand in other tiers.
_TIER_1 = "runs.seed < 3 AND runs.scale_rewards = 'group' AND runs.arm IN ('clean', 'paired', 'independent')"

_C2 = {"condition": "C2"}
_C4 = {"condition": "C4"}
_CONSTANT, _SPURIOUS = {"figure": "zero_variance / groups"}, {"figure": "spurious / all_correct"}
_NOISY, _START = {"regime": "faults_p025"}, {"regime": "clean", "step": 0}
_PAIRED, _ALONE = {"arm": "paired"}, {"arm": "independent"}
_PROBED = (
    ("L/R", {"figure": _SIDES, "noise": "outcome"}),
    ("traces under flips", {"figure": _TRACES, "noise": "outcome"}),
    ("traces under faults", {"figure": _TRACES, "noise": "transition"}),
)
# Name, trajectory, step, scored coordinates, and the paper's figures.
_CHECKPOINTS = (
    ("untrained", "base", 0, "all", ("0.275", "0.789", "0.601")),
    (
        "C2 paired, step 100",
        "c2-paired-%",
        100,
        "all",
        ("0.197 to 0.216", "0.707 to 0.731", "0.370 to 0.385"),
    ),
    ("C4 paired, step 100", "c4-paired-%", 100, "all", ("", "", "")),
    ("C2 paired, step 100, actions alone", "c2-paired-%", 100, "actions", ("", "", "")),
)
ROWS: tuple[tuple[str, str, str, dict[str, object]], ...] = (
    ("C4, C0: clean validation, step 0", "0.797 to 0.828", _CURVE, {**_C4, **_START}),
    ("C4: clean test, step 100", "0.858 to 0.905", _FINAL, {**_C4, **_START}),
    ("C2: validation at p = 0.25, step 0", "0.500 to 0.570", _CURVE, {**_C2, **_START, **_NOISY}),
    ("C2: test at p = 0.25, step 100", "0.608 to 0.710", _FINAL, {**_C2, **_NOISY}),
    ("C2: test at p = 0.10, step 100", "0.791 to 0.832", _FINAL, {**_C2, "regime": "faults_p010"}),
    ("C2: held-out types, step 100", "0.759 to 0.811", _FINAL, {**_C2, "regime": "held_out_types"}),
    ("C2: challenge, step 100", "0.625 to 0.780", _FINAL, {**_C2, "regime": "challenge"}),
    ("C2 paired: constant groups", "0.517 to 0.538", _GROUPS, {**_C2, **_CONSTANT, **_PAIRED}),
    ("C2 independent: constant groups", "0.127 to 0.135", _GROUPS, {**_C2, **_CONSTANT, **_ALONE}),
    ("C4 paired: constant groups", "0.570 to 0.623", _GROUPS, {**_C4, **_CONSTANT, **_PAIRED}),
    ("C4 independent: constant groups", "0.217 to 0.245", _GROUPS, {**_C4, **_CONSTANT, **_ALONE}),
    ("C4 independent: spurious rate", "0.526 to 0.574", _GROUPS, {**_C4, **_SPURIOUS, **_ALONE}),
    ("C4 paired: spurious rate", "0.000", _GROUPS, {**_C4, **_SPURIOUS, **_PAIRED}),
    ("C2: episodes with a fault, test at p = 0.25", "about 3/4", _EXPOSED, {}),
    ("C2: λ, step 0, 16 tasks", "0.33 to 0.38", _LUCK, {**_C2, "step": 0}),
    ("C2: λ, step 100, 16 tasks", "0.44 to 0.53", _LUCK, {**_C2, "step": 100}),
    *(
        (f"probe, {name}: {what}", paper, _PROBE, {"trajectory": t, "step": step, "scored": scored, **figure})
        for name, t, step, scored, papers in _CHECKPOINTS
        for (what, figure), paper in zip(_PROBED, papers, strict=True)
    ),
)


def table(study: Study) -> str:
    """Return the table in Markdown: what, the paper's range, this study's range."""
    lines = ["| | paper | here |", "| --- | --- | --- |"]
    with asking(study) as ask:
        for what, paper, query, parts in ROWS:
            sql = query.format(**parts).replace("tier_1", _TIER_1)
            values = sorted(float(row[0]) for row in ask(sql).rows)
            lines.append(f"| {what} | {paper} | {_range(values)} |")
    lines.append(f"| untrained policy: λ over 128 tasks | | {untrained_luck_share():.2f} |")
    return "\n".join(lines) + "\n"


def untrained_luck_share() -> float:
    """Return λ of the untrained policy over the 128 diagnostic tasks, under the default mixture."""
    from toolkit.estimators import mean_luck_share
    from toolkit.lab.evaluation.diagnostic import SCHEDULES, diagnose
    from toolkit.lab.policies.loglinear import Policy, untrained
    from toolkit.seeds import sampling_seed

    policy, seed = Policy(untrained(16), 16), sampling_seed("embedded", "untrained", 0)
    rows = diagnose(policy, "faults_p025", "untrained", 0, seed, pool="diagnostic_128")
    successes = [row["true_successes"] for row in rows]
    tables = [successes[at : at + SCHEDULES] for at in range(0, len(rows), SCHEDULES)]
    return float(mean_luck_share(tables).mean or 0.0)


def _range(values: list[float]) -> str:
    low, high = f"{values[0]:.3f}", f"{values[-1]:.3f}"
    return low if low == high else f"{low} to {high}"


def main() -> None:
    """Write or print the table."""
    made = table(open_study(find_home().registers / "embedded"))
    if "--print" in sys.argv:
        print(made)
        return
    text = CARD.read_text(encoding="utf-8")
    head, _, rest = text.partition(START)
    _, _, tail = rest.partition(END)
    CARD.write_text(f"{head}{START}{made}{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
