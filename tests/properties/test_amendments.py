"""What amendments say: a rule is changed only where there is one, and added only where there is none."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.decisions import study as made
from tests.unit.decisions.study import RULES, rule
from toolkit.errors import RuleError
from toolkit.registers.columns import POOLS, REGIMES
from toolkit.rules.plan import SCORED, OutcomeSet, ProbePlan, ProbeSet, TransitionSet
from toolkit.rules.rulebook import load_rulebook
from toolkit.rules.rules import RELATIONS

FROZEN = RULES + rule("A", "mean(gap) > 0") + rule("B", "mean(gap) > 0")
one = st.dictionaries(st.sampled_from("ABCD"), st.sampled_from(RELATIONS), max_size=4)


def amendment(number: int, relations: dict[str, str]) -> str:
    lists = [
        f"{relation} = {[name for name, mine in relations.items() if mine == relation]}"
        for relation in RELATIONS
    ]
    return made.amendment(
        f"A{number}", "\n".join(lists), *(rule(name, "mean(gap) > 0") for name in relations)
    )


@given(st.lists(one, max_size=4))
def test_a_rule_is_added_once_and_changed_only_where_it_is(amendments: list[dict[str, str]]) -> None:
    there, added, last, fits = {"A", "B"}, {}, {}, True
    for number, relations in enumerate(amendments):
        fits &= all((relation == "adds") != (name in there) for name, relation in relations.items())
        there |= set(relations)
        added |= {name: f"A{number}" for name, relation in relations.items() if relation == "adds"}
        last |= {name: (f"A{number}", relation) for name, relation in relations.items()}
    texts = [amendment(number, relations) for number, relations in enumerate(amendments)]
    if not fits:
        with pytest.raises(RuleError):
            load_rulebook(FROZEN, texts)
        return
    book = load_rulebook(FROZEN, texts)
    assert set(book.rules) == there
    assert {name: (change.amendment, change.relation) for name, change in book.changes.items()} == last
    assert {name: change.added_by for name, change in book.changes.items() if change.frozen is None} == added


fractions = st.integers(1, 9999).map(lambda n: Fraction(n, 10000))
PLAYED = {"pool": st.sampled_from(POOLS), "regime": st.sampled_from(REGIMES), "tasks": st.integers(2, 300)}


@st.composite
def probes(draw: st.DrawFn) -> ProbePlan:
    size = draw(st.integers(2, 16))
    return ProbePlan(
        tiers=tuple(draw(st.lists(st.sampled_from([1, 2]), min_size=1, unique=True))),
        scored=tuple(draw(st.lists(st.sampled_from(SCORED), min_size=1, unique=True))),
        group_size=size,
        flip_rate=draw(fractions),
        outcome=draw(st.builds(OutcomeSet, **PLAYED)),
        transition=draw(
            st.builds(
                TransitionSet,
                **PLAYED,
                schedules=st.integers(size, size + 8),
                groups=st.integers(1, 99),
            )
        ),
        level=draw(fractions),
        resamples=draw(st.integers(1, 10**6)),
        rng_seed=draw(st.integers(0, 2**62)),
    )


def in_set(played: ProbeSet) -> str:
    return f'pool = "{played.pool}", regime = "{played.regime}", tasks = {played.tasks}'


def written(probe: ProbePlan) -> str:
    """Return a probe as TOML."""
    transition = probe.transition
    return f"""
[probe]
tiers = {list(probe.tiers)}
scored = {list(probe.scored)}
group_size = {probe.group_size}
flip_rate = "{float(probe.flip_rate):.4f}"
outcome = {{ {in_set(probe.outcome)} }}
transition = {{ {in_set(transition)}, schedules = {transition.schedules}, groups = {transition.groups} }}
level = "{float(probe.level):.4f}"
resamples = {probe.resamples}
rng_seed = {probe.rng_seed}
"""


@given(probes())
def test_a_probe_reads_back_as_it_was_written(probe: ProbePlan) -> None:
    assert load_rulebook(FROZEN + written(probe)).probe == probe


@given(probes(), st.integers(1, 16))
def test_a_group_needs_as_many_schedules(probe: ProbePlan, fewer: int) -> None:
    short = max(probe.group_size - fewer, 0)
    text = written(probe).replace(f"schedules = {probe.transition.schedules}", f"schedules = {short}")
    with pytest.raises(RuleError, match="too small"):
        load_rulebook(FROZEN + text)
