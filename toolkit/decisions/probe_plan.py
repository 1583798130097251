"""The registered gradient probe: which policies it scores, on which tasks, and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from toolkit.decisions.keys import OPTIONAL, Key, Value, keys
from toolkit.decisions.plan import Plan
from toolkit.decisions.section import Section
from toolkit.registers.columns import POOLS, REGIMES
from toolkit.registers.row_tables import SCORED

_SMALLEST_GROUP = 2  # one rollout has nothing to be compared with
_FEWEST_TASKS = 2  # tasks are resampled

_PLAYED = (
    Key("pool", Value.TEXT, "task pool; its first tasks are played", choices=POOLS),
    Key("regime", Value.TEXT, "noise that they are played under", choices=REGIMES),
    Key("tasks", Value.WHOLE, "how many tasks", least=_FEWEST_TASKS),
)
OUTCOME = keys(
    *_PLAYED,
    Key(
        "rollouts",
        Value.WHOLE,
        "rollouts a task; else as many as a group has",
        OPTIONAL,
        least=_SMALLEST_GROUP,
    ),
)
TRANSITION = keys(
    *_PLAYED,
    Key("schedules", Value.WHOLE, "schedules a task, at least `group_size`: one for each rollout"),
    Key("groups", Value.WHOLE, "groups resampled for each task and design", least=1),
)
PROBE = keys(
    Key("tiers", Value.WHOLES, "every run of these tiers is probed; the untrained policy once"),
    Key("scored", Value.TEXTS, "coordinates of scores: all, or those of actions alone", choices=SCORED),
    Key("group_size", Value.WHOLE, "rollouts a group, G", least=_SMALLEST_GROUP),
    Key("flip_rate", Value.DECIMAL, "flip rate of the grader, q, between 0 and 1"),
    Key("outcome", OUTCOME, "episodes over whose successes the grader's flips are enumerated"),
    Key("transition", TRANSITION, "episodes under tool faults"),
    Key("level", Value.DECIMAL, "confidence level of the intervals, between 0 and 1"),
    Key("resamples", Value.WHOLE, "bootstrap resamples of tasks", least=1),
    Key("rng_seed", Value.WHOLE, "seed of the bootstrap", least=0),
    Key("steps", Value.WHOLES, "checkpoints that are probed, in training steps; else all", OPTIONAL),
    Key("runs", Value.TEXTS, "the only runs of `tiers` that are probed; else all", OPTIONAL),
)


@dataclass(frozen=True)
class ProbeSet:
    """Episodes that the probe scores at every checkpoint.

    Args:
        pool: task pool; its first tasks are played.
        regime: noise that they are played under.
        tasks: how many tasks.
        schedules: schedules a task; the stratified design takes one rollout under each of some of them.
        groups: groups resampled for each task and design; 0 where nothing is resampled.
        rollouts: rollouts under each schedule; None for as many as a group has.
    """

    pool: str
    regime: str
    tasks: int
    schedules: int = 1
    groups: int = 0
    rollouts: int | None = None


@dataclass(frozen=True)
class ProbePlan:
    """The design of the probe: the keys of `PROBE`; what it plays and regroups derives from its anchor."""

    tiers: tuple[int, ...]
    scored: tuple[str, ...]
    group_size: int
    flip_rate: Fraction
    outcome: ProbeSet
    transition: ProbeSet
    level: Fraction
    resamples: int
    rng_seed: int
    steps: tuple[int, ...] = ()
    runs: tuple[str, ...] = ()


def read_probe(content: object, plan: Plan, where: str = "probe") -> ProbePlan:
    """Read the table `[probe]`."""
    section = Section(content, where, PROBE)
    tiers = section.wholes("tiers")
    _check_listed(section, "tiers", tiers, sorted({cell.tier for cell in plan.cells}))
    scored = section.texts("scored")
    _check_listed(section, "scored", scored, SCORED)
    if plan.recipe and scored != SCORED[:1]:  # of a language model, no coordinates are the actions' alone
        raise section.wrong(
            "a language model has no coordinates of actions alone",
            expected=f"scored = {SCORED[0]}",
            found=", ".join(scored),
        )
    group_size = _size(section, "group_size")
    probe = ProbePlan(
        tiers=tiers,
        scored=scored,
        group_size=group_size,
        flip_rate=_inside(section, "flip_rate"),
        outcome=_set(Section(section.table("outcome"), f"{where}.outcome", OUTCOME)),
        transition=_set(Section(section.table("transition"), f"{where}.transition", TRANSITION), group_size),
        level=_inside(section, "level"),
        resamples=section.whole("resamples"),
        rng_seed=section.whole("rng_seed"),
        steps=_steps(section, tiers, plan),
        runs=_runs(section),
    )
    section.done()
    return probe


def _set(section: Section, group_size: int | None = None) -> ProbeSet:
    """Read the episodes of a kind of noise; those under tool faults are put into groups of a size."""
    played = section.text("pool"), section.text("regime"), section.whole("tasks")
    if group_size is None:
        read = ProbeSet(*played, rollouts=_size(section, "rollouts") if section.has("rollouts") else None)
    else:
        read = ProbeSet(*played, schedules=section.whole("schedules"), groups=section.whole("groups"))
    section.done()
    # A stratified group has its rollouts under as many schedules: one under each.
    if group_size is not None and read.schedules < group_size:
        problem = "'schedules' is too small"
        raise section.wrong(problem, expected=f"at least {group_size}", found=read.schedules)
    return read


def _steps(section: Section, tiers: tuple[int, ...], plan: Plan) -> tuple[int, ...]:
    if not section.has("steps"):
        return ()
    steps = section.wholes("steps")
    if not steps or min(steps) < 1 or len(set(steps)) < len(steps):
        raise section.wrong(
            "'steps' names a step twice, one before 1, or none",
            expected="steps of checkpoints; the untrained policy is probed in any case",
            found=", ".join(map(str, steps)) or "nothing",
        )
    trained = [cell.fixed["steps"] for cell in plan.cells if cell.tier in tiers and "steps" in cell.fixed]
    last = min((steps_of for steps_of in trained if not isinstance(steps_of, str)), default=None)
    if last is not None and max(steps) > last:
        raise section.wrong(
            "'steps' names a step after the end of a run that is probed",
            expected=f"at most {last}",
            found=max(steps),
        )
    return steps


def _runs(section: Section) -> tuple[str, ...]:
    """Read which runs alone are probed; whoever specifies the runs knows their names."""
    if not section.has("runs"):
        return ()
    runs = section.texts("runs")
    if not runs or len(set(runs)) < len(runs):
        raise section.wrong(
            "'runs' names a run twice, or none",
            expected="names of runs; every run of the tiers where it is left out",
            found=", ".join(runs) or "nothing",
        )
    return runs


def _size(section: Section, key: str) -> int:
    """Read how many rollouts a group has."""
    from toolkit.estimators.moments import LARGEST_GROUP  # where a probe is registered alone

    size = section.whole(key)
    if size > LARGEST_GROUP:
        raise section.wrong(f"{key!r} is too large", expected=f"at most {LARGEST_GROUP}", found=size)
    return size


def _inside(section: Section, key: str) -> Fraction:
    value = section.exact(key)
    if value is None or not 0 < value < 1:
        raise section.wrong(f"{key!r} lies between 0 and 1, ends excluded", found=value)
    return value


def _check_listed(section: Section, key: str, names: tuple[object, ...], allowed: Sequence[object]) -> None:
    if not names or len(set(names)) != len(names) or not set(names) <= set(allowed):
        raise section.wrong(
            f"{key!r} names something twice, something unknown, or nothing",
            expected=", ".join(map(str, allowed)),
            found=", ".join(map(str, names)) or "nothing",
        )
