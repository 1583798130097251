"""Registrations that could never be decided are refused before they are frozen; those that can be are not."""

import pytest

from tests.conftest import CHECKOUT
from tests.unit.decisions.rows_study import ROW_RULES
from tests.unit.decisions.study import rule
from toolkit.errors import RuleError
from toolkit.rules.rulebook import load_rulebook
from toolkit.verification.decidable import check_decidable

HERE = """
language = 1
name = "here"
title = "Runs of this toolkit"
deciding_roles = ["primary"]

[training]
steps = 100
group_size = 8
prompts_per_step = 24
training_groups = 2400
training_rollouts = 19200
loss_type = "dapo"

[[matrix]]
tier = 1
condition = "C2"
noise = "tool faults"
fixed = { fault_rate = "0.25", flip_rate = "0" }
regime = "faults_p025"
arms = ["paired", "independent"]
seeds = [0, 1, 2]
scale_rewards = "group"
for = ["H"]

[sets.curve]
where = { phase = "periodic", pool = "validation", regime = "faults_p025" }
tasks = 64
schedules = 2

[endpoints.gap]
title = "Gap"
register = "evaluations"
set = "curve"
outcome = { count = "successes", of = "episodes" }
condition = "C2"
arms = ["paired", "independent"]
seeds = [0, 1, 2]
by = "seed"
steps = [0, 20, 40, 60, 80, 100]
over_steps = "auc"
unit = "fraction"
range = ["-1", "1"]

[endpoints.spurious]
title = "Spurious"
register = "groups_summary"
outcome = { count = "spurious", of = "all_correct" }
expect = { groups = 2400 }
condition = "C2"
arms = ["independent"]
seeds = [0, 1, 2]
by = "pooled"
unit = "fraction"
range = ["0", "1"]

[endpoints.luck]
title = "Luck"
register = "luck_share_summary"
outcome = { figure = "luck_share" }
where = { target = "true_success" }
condition = "C2"
arms = ["paired"]
seeds = [0, 1, 2]
by = "run"
steps = [100]
unit = "fraction"
range = ["0", "1"]

[endpoints.trace]
title = "Trace"
register = "probe"
outcome = { figure = "trace_paired", over = "trace_independent" }
where = { noise = "outcome", estimator = "MC", scored = "all" }
by = "checkpoint"
checkpoints = ["base@0", "c2-paired-s0@20"]
unit = "ratio"
range = ["0", "1000"]

[interval_method]
method = "percentile bootstrap"
resamples = 10000
resampled = ["seed pairs", "tasks with all their schedules"]
crossing = "crossed"
rng_seed = 1

[intervals.gap_95]
endpoint = "gap"
level = "0.95"

[probe]
tiers = [1]
steps = [20]
scored = ["all"]
group_size = 8
flip_rate = "0.10"
outcome = { pool = "validation", regime = "clean", tasks = 16 }
transition = { pool = "diagnostic", regime = "faults_p025", tasks = 4, schedules = 8, groups = 64 }
level = "0.95"
resamples = 1000
rng_seed = 1

""" + rule(
    "H", "mean(gap) > 0.01", "lower(gap_95) > 0", "spurious < 0.5", "each(luck < 0.5)", "each(trace < 1)"
)
ELSEWHERE = ROW_RULES + rule(
    "H", "mean(gap) > 0.01", "lower(gap_95) > 0", "mean(other) > 0.01", "pooled < 0.5"
)
REACHED = HERE
for old, new in (
    ('over_steps = "auc"', 'over_steps = "steps_to_threshold"\nthreshold = "0.9"'),
    ('unit = "fraction"\nrange = ["-1", "1"]', 'unit = "steps"\nrange = ["-100", "100"]'),
    ('[intervals.gap_95]\nendpoint = "gap"\nlevel = "0.95"', ""),
    ("lower(gap_95) > 0", "each(gap > 2)"),
    ("mean(gap) > 0.01", "each(gap > 1)"),
):
    assert old in REACHED
    REACHED = REACHED.replace(old, new, 1)
FLIP = """
[tests.flip]
endpoint = "gap"
method = "sign flip"
over = "tasks"
alternative = "two-sided"
"""
TIMED = (
    HERE[HERE.index("[endpoints.gap]") : HERE.index("[endpoints.spurious]")]
    .replace("endpoints.gap", "endpoints.timed")
    .replace('over_steps = "auc"', 'over_steps = "steps_to_threshold"\nthreshold = "0.5"')
    .replace('unit = "fraction"\nrange = ["-1", "1"]', 'unit = "steps"\nrange = ["-100", "100"]')
)
BY_SEED = 'method = "seed bootstrap"'
TABLE_OF_SEEDS = "seeds = [0, 1, 2]\nby"


def on_some(number: int, tasks: int, **attributes: str) -> str:
    """Return an endpoint on some tasks, that a rule reads."""
    said = ", ".join(f'{name} = "{word}"' for name, word in attributes.items())
    gap = ELSEWHERE[ELSEWHERE.index("[endpoints.gap]") : ELSEWHERE.index("[endpoints.other]")]
    return (
        f"\n[sets.some{number}]\nwhere = {{ {WHOLE}, {said} }}\ntasks = {tasks}\nschedules = 2\n\n"
        + gap.replace(".gap]", f".gap{number}]").replace('"validation"', f'"some{number}"')
        + rule(f"S{number}", f"mean(gap{number}) > 0.01")
    )


WHOLE = 'phase = "periodic", pool = "validation", regime = "clean"'
ATTRIBUTES = '[attributes]\ndifficulty = ["easy", "hard"]\ntopic = ["sums", "words", "maps"]\n\n[sets.'
OF_WORDS = ELSEWHERE.replace("[sets.", ATTRIBUTES, 1)
SUBGROUPS = (
    OF_WORDS
    + on_some(1, 2, difficulty="easy")
    + on_some(2, 3, difficulty="hard")
    + on_some(3, 1, difficulty="easy", topic="sums")
    + on_some(4, 4, topic="sums")
)
OF_HARD = 'difficulty = "hard" }\ntasks = 3'
NO_TASKS = "no tasks are as many: 5 in all"

UNDECIDABLE = {
    "parts that are more than the whole": (SUBGROUPS, OF_HARD, OF_HARD.replace("3", "4"), NO_TASKS),
    "parts that leave tasks without a word": (SUBGROUPS, OF_HARD, OF_HARD.replace("3", "2"), NO_TASKS),
    "a part that another leaves empty": (
        OF_WORDS + on_some(1, 5, difficulty="easy") + on_some(2, 1, difficulty="hard"),
        "",
        "",
        NO_TASKS,
    ),
    "parts that overlap too little for the whole": (
        SUBGROUPS,
        'topic = "sums" }\ntasks = 4',
        'topic = "sums" }\ntasks = 5',
        "1 with difficulty=easy, topic=sums",
    ),
    "an attribute of tasks that are made here": (
        HERE.replace("[sets.", ATTRIBUTES, 1),
        'regime = "faults_p025" }\ntasks',
        'regime = "faults_p025", difficulty = "hard" }\ntasks',
        "says no attributes of tasks",
    ),
    "a resampling that nobody here computes": (HERE, '"tasks with', '"some with', "some with all their"),
    "the same, of runs played elsewhere": (ELSEWHERE, '"tasks with', '"some with', "some with all their"),
    "seeds resampled, and no tasks": (
        HERE,
        '"seed pairs", "tasks with all their schedules"',
        '"seed pairs"',
        "seed pairs",
    ),
    "tasks without their schedules": (HERE, "tasks with all their schedules", "tasks", "can be computed"),
    "an interval of a pooled rate": (
        HERE,
        'endpoint = "gap"',
        'endpoint = "spurious"',
        "not a mean of episodes",
    ),
    "an interval of checkpoints": (HERE, 'endpoint = "gap"', 'endpoint = "trace"', "not a mean of episodes"),
    "an interval of a diagnostic": (HERE, 'endpoint = "gap"', 'endpoint = "luck"', "not a mean of episodes"),
    "Student's interval of one seed": (
        ELSEWHERE.replace("seeds = [0, 1]", "seeds = [0]"),
        'level = "0.95"',
        'level = "0.95"\nmethod = "t over seeds"',
        "a single seed",
    ),
    "seeds drawn of one seed": (
        ELSEWHERE.replace("seeds = [0, 1]", "seeds = [0]"),
        'level = "0.95"',
        f'level = "0.95"\n{BY_SEED}',
        "a single seed",
    ),
    "one seed in a bootstrap": (ELSEWHERE, "seeds = [0, 1]", "seeds = [0]", "nothing to resample"),
    "one task in an interval over tasks": (
        ELSEWHERE.replace("tasks = 5", "tasks = 1"),
        'level = "0.95"',
        'level = "0.95"\nmethod = "t over tasks"',
        "nothing to resample",
    ),
    "one task in a bootstrap": (ELSEWHERE, "tasks = 5", "tasks = 1", "nothing to resample"),
    "an interval on a set without a size": (
        ELSEWHERE,
        "tasks = 5\nschedules = 2",
        'size = "not registered"',
        "is not registered",
    ),
    "seeds that the matrix does not have": (
        HERE,
        TABLE_OF_SEEDS,
        "seeds = [0, 1, 3]\nby",
        "C2 paired seed 3",
    ),
    "such seeds of runs played elsewhere": (
        ELSEWHERE,
        'seeds = [0, 1]\nby = "pooled"',
        'seeds = [0, 2]\nby = "pooled"',
        "X paired seed 2",
    ),
    "an arm that the matrix does not have": (
        HERE,
        'arms = ["independent"]',
        'arms = ["clean"]',
        "C2 clean seed 0",
    ),
    "a condition that the matrix does not have": (
        HERE,
        'condition = "C2"\narms = ["paired", "independent"]\nseeds = [0, 1, 2]\nby',
        'condition = "C3"\narms = ["paired", "independent"]\nseeds = [0, 1, 2]\nby',
        "C3 paired seed 0",
    ),
    "advantages scaled otherwise": (
        HERE,
        'scale_rewards = "group"\nfor',
        'scale_rewards = "none"\nfor',
        "does not have",
    ),
    "a matrix without runs": (HERE, "seeds = [0, 1, 2]\nscale", "seeds = []\nscale", ""),
    "runs of a role that decides nothing": (
        HERE,
        'regime = "faults_p025"\narms',
        'regime = "faults_p025"\nrole = "replication"\narms',
        "",
    ),
    "a test of signs on tasks that are not counted": (
        f"{HERE}{TIMED}{FLIP}",
        'endpoint = "gap"\nmethod = "sign flip"',
        'endpoint = "timed"\nmethod = "sign flip"',
        "tests.flip: timed is not a mean of episodes by seed",
    ),
    "a test whose set is not played": (
        HERE + FLIP,
        'regime = "faults_p025" }\ntasks',
        'regime = "faults_p010" }\ntasks',
        "tests.flip: evaluations has no row",
    ),
    "a regime that the battery does not play": (
        HERE,
        'regime = "faults_p025" }\ntasks',
        'regime = "faults_p010" }\ntasks',
        "has no r",
    ),
    "a phase at another pool": (HERE, 'pool = "validation", regime', 'pool = "test", regime', "has no r"),
    "more tasks than are played": (HERE, "tasks = 64", "tasks = 65", "expected 130 episodes"),
    "more schedules than are played": (HERE, "schedules = 2\n", "schedules = 3\n", "expected 192 episodes"),
    "as many episodes of other tasks": (
        HERE,
        "tasks = 64\nschedules = 2",
        "tasks = 32\nschedules = 4",
        "expected 32 tasks",
    ),
    "a step that is no checkpoint": (HERE, "steps = [0, 20, 40,", "steps = [0, 30, 40,", "has no r"),
    "a step after the last": (HERE, "80, 100]", "80, 120]", "has no r"),
    "more groups than are trained": (HERE, "groups = 2400 }", "groups = 2500 }", "expected 2500 groups"),
    "a luck share at a step without": (HERE, "steps = [100]", "steps = [40]", "has no r"),
    "a luck share of a reward without": (HERE, 'target = "true_success"', 'target = "calls"', "has no r"),
    "a checkpoint that is not probed": (HERE, "c2-paired-s0@20", "c2-paired-s0@40", "has no r"),
    "a run that is not probed": (
        HERE,
        'scored = ["all"]',
        'scored = ["all"]\nruns = ["c2-paired-s1"]',
        "has no r",
    ),
    "coordinates that are not scored": (HERE, 'scored = "all"', 'scored = "actions"', "has no r"),
    "a table that runs do not leave": (HERE, 'register = "probe"', 'register = "probe_intervals"', ""),
}


@pytest.mark.parametrize("rules", [HERE, ELSEWHERE, ELSEWHERE.replace("seeds = [0, 1]", "seeds = [0]")])
@pytest.mark.parametrize("method", ["t over tasks", "bca bootstrap"])
def test_an_interval_over_tasks_can_be_decided_with_one_seed_too(rules: str, method: str) -> None:
    check_decidable(
        load_rulebook(rules.replace('endpoint = "gap"', f'endpoint = "gap"\nmethod = "{method}"'))
    )


def refused(rules: str) -> str:
    """Return what a registration is refused with."""
    with pytest.raises(RuleError) as error:
        check_decidable(load_rulebook(rules))
    return str(error.value)


@pytest.mark.parametrize(
    "rules",
    [HERE, ELSEWHERE, REACHED, HERE + FLIP, SUBGROUPS],
    ids=["here", "elsewhere", "limit", "test", "subgroups"],
)
def test_what_can_be_decided_is_accepted(rules: str) -> None:
    check_decidable(load_rulebook(rules))


@pytest.mark.parametrize(("rules", "old", "new", "why"), UNDECIDABLE.values(), ids=UNDECIDABLE)
def test_what_could_never_be_decided_is_refused(rules: str, old: str, new: str, why: str) -> None:
    assert old in rules
    assert why in refused(rules.replace(old, new))


def test_everything_that_lacks_a_value_is_named_with_its_reason() -> None:
    said = refused(HERE.replace("c2-paired-s0@20", "c2-paired-s0@40"))
    assert "endpoints.trace: probe has no row with" in said
    assert "trajectory=c2-paired-s0, step=40" in said
    only = rule("H", "mean(gap) > 0.01", "lower(gap_95) > 0", "mean(other) > 0.01", "pooled < 0.5")
    said = refused(
        ELSEWHERE.replace(only, rule("H", "lower(gap_95) > 0")).replace('"tasks with', '"some with')
    )
    assert ("intervals.gap_95: " in said, "rules.H: " in said) == (True, True)


def test_of_some_rules_what_they_read_is_checked_and_nothing_else() -> None:
    """A registration that was frozen with something undecidable can still be amended."""
    other = rule("J", "mean(gap) > 0.02")
    book = load_rulebook(HERE.replace("c2-paired-s0@20", "c2-paired-s0@40") + other)
    check_decidable(book, {"J"})
    with pytest.raises(RuleError, match="trace"):
        check_decidable(book, {"J", "H"})


LARGE = ("coupled", "embedded", "map")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LARGE else ())
        for name in sorted(path.parent.name for path in (CHECKOUT / "prereg").glob("*/rules.toml"))
    ],
)
def test_every_shipped_registration_can_be_decided(name: str) -> None:
    check_decidable(load_rulebook((CHECKOUT / "prereg" / name / "rules.toml").read_text(encoding="utf-8")))
