"""The registered probe: read exactly, once, and refused with every single defect."""

from fractions import Fraction

from tests.conftest import CHECKOUT
from tests.unit.decisions.study import RULES, amendment, rule
from toolkit.rules.plan import OutcomeSet, ProbePlan, TransitionSet
from toolkit.rules.rulebook import load_rulebook
from toolkit.structs import replace

PROBE = """
[probe]
tiers = [1]
scored = ["all", "actions"]
group_size = 8
flip_rate = "0.10"
outcome = { pool = "validation", regime = "clean", tasks = 64 }
transition = { pool = "diagnostic", regime = "faults_p025", tasks = 16, schedules = 8, groups = 64 }
level = "0.95"
resamples = 10000
rng_seed = 13
"""
GOOD = RULES + rule("H", "mean(gap) > 0")
AMENDED = amendment("A1", "", PROBE)
PLAN = ProbePlan(
    tiers=(1,),
    scored=("all", "actions"),
    group_size=8,
    flip_rate=Fraction(1, 10),
    outcome=OutcomeSet(pool="validation", regime="clean", tasks=64),
    transition=TransitionSet(pool="diagnostic", regime="faults_p025", tasks=16, schedules=8, groups=64),
    level=Fraction(19, 20),
    resamples=10000,
    rng_seed=13,
)


def test_a_probe_is_read_from_the_rules() -> None:
    assert load_rulebook(GOOD + PROBE).probe == PLAN


def test_a_probe_is_read_from_an_amendment() -> None:
    assert load_rulebook(GOOD, [AMENDED]).probe == PLAN
    assert load_rulebook(GOOD, [amendment("A1", "")]).probe is None


def test_the_example_in_the_documentation_is_one() -> None:
    text = (CHECKOUT / "toolkit" / "prereg" / "README.md").read_text(encoding="utf-8")
    example = text.partition("```toml\n")[2].partition("```")[0]
    assert load_rulebook(GOOD + example).probe == PLAN


SMALL = (
    PROBE.replace('["all", "actions"]', '["all"]')
    .replace("group_size = 8", "group_size = 4")
    .replace("tasks = 64 }", "tasks = 16, rollouts = 8 }")
    .replace("tasks = 16, schedules = 8, groups = 64", "tasks = 8, schedules = 4, groups = 16")
    .replace("rng_seed = 13", "rng_seed = 13\nsteps = [20]")
)
MODELS = GOOD + '[recipe]\nname = "any"\n'


def test_a_small_one_has_groups_of_two_sizes_and_some_steps() -> None:
    outcome = OutcomeSet(pool="validation", regime="clean", tasks=16, rollouts=8)
    transition = replace(PLAN.transition, tasks=8, schedules=4, groups=16)
    expected = replace(
        PLAN, outcome=outcome, transition=transition, group_size=4, scored=("all",), steps=(20,)
    )
    assert load_rulebook(MODELS + SMALL).probe == expected


def test_some_runs_alone_can_be_named() -> None:
    named = PROBE.replace("rng_seed = 13", 'rng_seed = 13\nruns = ["a-s0", "a-s1"]')
    assert load_rulebook(GOOD + named).probe == replace(PLAN, runs=("a-s0", "a-s1"))


def test_so_has_the_small_example_in_the_documentation() -> None:
    text = (CHECKOUT / "toolkit" / "prereg" / "README.md").read_text(encoding="utf-8")
    whole, small = (part.partition("```")[0] for part in text.split("```toml\n")[1:3])
    named = {line.partition(" = ")[0] for line in small.splitlines()}
    rest = "\n".join(line for line in whole.splitlines() if line.partition(" = ")[0] not in named)
    probe = load_rulebook(MODELS + f"{rest}\n{small}").probe
    assert probe is not None
    assert (probe.outcome.rollouts, probe.transition.tasks, probe.steps) == (8, 8, (50,))
