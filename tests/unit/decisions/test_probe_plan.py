"""The registered probe: read exactly, once, and refused with every single defect."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.conftest import CHECKOUT
from tests.unit.decisions.study import RULES, rule
from toolkit.decisions.probe_plan import ProbePlan, ProbeSet
from toolkit.decisions.rulebook import load_rulebook
from toolkit.errors import RuleError

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
HEAD = 'dated = "2026-01-01"\ntitle = "t"\nseen = "s"\nreason = "r"\nchanges = ["c"]\n'
PLAN = ProbePlan(
    tiers=(1,),
    scored=("all", "actions"),
    group_size=8,
    flip_rate=Fraction(1, 10),
    outcome=ProbeSet("validation", "clean", 64),
    transition=ProbeSet("diagnostic", "faults_p025", 16, schedules=8, groups=64),
    level=Fraction(19, 20),
    resamples=10000,
    rng_seed=13,
)


def amended(label: str, text: str) -> str:
    return f'[amendment]\nid = "{label}"\n{HEAD}{text}'


def test_a_probe_is_read_from_the_rules() -> None:
    assert load_rulebook(GOOD + PROBE).probe == PLAN


def test_a_probe_is_read_from_an_amendment() -> None:
    assert load_rulebook(GOOD, [amended("A1", PROBE)]).probe == PLAN


def test_the_example_in_the_documentation_is_one() -> None:
    text = (CHECKOUT / "toolkit" / "prereg" / "README.md").read_text(encoding="utf-8")
    example = text.partition("```toml\n")[2].partition("```")[0]
    assert load_rulebook(GOOD + example).probe == PLAN


def test_without_one_there_is_none() -> None:
    assert load_rulebook(GOOD, [amended("A1", "")]).probe is None


@pytest.mark.parametrize(
    ("rules", "amendments"),
    [(GOOD + PROBE, [amended("A1", PROBE)]), (GOOD, [amended("A1", PROBE), amended("A2", PROBE)])],
    ids=["frozen and amended", "amended twice"],
)
def test_a_second_probe_is_refused(rules: str, amendments: list[str]) -> None:
    with pytest.raises(RuleError, match="there is one already"):
        load_rulebook(rules, amendments)


DEFECTS = {
    "no table": (PROBE, "probe = 5\n"),
    "an empty table": (PROBE, "[probe]\n"),
    "an unknown key": ("rng_seed = 13", "rng_seed = 13\nsurprise = 1"),
    "an unknown key of a set": ("tasks = 64 }", "tasks = 64, mood = 1 }"),
    "schedules of the outcome": ("tasks = 64 }", "tasks = 64, schedules = 8 }"),
    "groups of the outcome": ("tasks = 64 }", "tasks = 64, groups = 8 }"),
    "no tier": ("tiers = [1]", "tiers = []"),
    "a tier twice": ("tiers = [1]", "tiers = [1, 1]"),
    "a tier that the matrix does not have": ("tiers = [1]", "tiers = [1, 3]"),
    "a tier in words": ("tiers = [1]", 'tiers = ["1"]'),
    "a Boolean tier": ("tiers = [1]", "tiers = [true]"),
    "nothing scored": ('["all", "actions"]', "[]"),
    "coordinates twice": ('["all", "actions"]', '["all", "all"]'),
    "unknown coordinates": ('["all", "actions"]', '["all", "tokens"]'),
    "a group of one": ("group_size = 8", "group_size = 1"),
    "a negative group": ("group_size = 8", "group_size = -8"),
    "a group larger than the schedules": ("group_size = 8", "group_size = 9"),
    "too few schedules": ("schedules = 8", "schedules = 7"),
    "no flips": ('flip_rate = "0.10"', 'flip_rate = "0"'),
    "nothing but flips": ('flip_rate = "0.10"', 'flip_rate = "1"'),
    "a rate that is no text": ('flip_rate = "0.10"', "flip_rate = 0.10"),
    "no rate": ('flip_rate = "0.10"\n', ""),
    "an unknown pool": ('pool = "validation"', 'pool = "swimming"'),
    "an unknown regime": ('regime = "faults_p025"', 'regime = "faults_p026"'),
    "no tasks of the outcome": ("tasks = 64", "tasks = 0"),
    "no tasks of the transition": ("tasks = 16", "tasks = 0"),
    "half a task": ("tasks = 16", "tasks = 16.5"),
    "no groups": ("groups = 64", "groups = 0"),
    "groups left out": (", groups = 64", ""),
    "a level of zero": ('level = "0.95"', 'level = "0"'),
    "a level of one": ('level = "0.95"', 'level = "1"'),
    "no resamples": ("resamples = 10000\nrng_seed = 13", "resamples = 0\nrng_seed = 13"),
    "a negative seed": ("rng_seed = 13", "rng_seed = -1"),
    "no outcome": ('outcome = { pool = "validation", regime = "clean", tasks = 64 }\n', ""),
}


@pytest.mark.parametrize(("good", "bad"), DEFECTS.values(), ids=DEFECTS)
def test_a_defect_is_refused_and_its_place_named(good: str, bad: str) -> None:
    assert PROBE.count(good) == 1
    with pytest.raises(RuleError) as caught:
        # A top-level value stands before the tables.
        load_rulebook(bad + GOOD if bad.startswith("probe =") else GOOD + PROBE.replace(good, bad))
    assert caught.value.where
    assert "probe" in str(caught.value)


def test_a_defect_in_an_amendment_names_the_amendment() -> None:
    with pytest.raises(RuleError) as caught:
        load_rulebook(GOOD, [amended("A1", PROBE.replace("tasks = 16", "tasks = 0"))])
    assert caught.value.where == "amendment A1, probe.transition"
