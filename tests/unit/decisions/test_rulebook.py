"""What a rules file may not say, each as one defect of a good one."""

import pytest

from tests.unit.decisions.study import RULES, amendment, rule
from toolkit.errors import RuleError
from toolkit.rules.rulebook import load_rulebook

GOOD = RULES + rule("H", "mean(gap) > 0")
READINGS = 'binding = "a"\nreadings = { a = "One.", b = "Two." }'

PLACE = 'arms = ["paired", "independent"]\nseeds = [0, 1]\nby'

DEFECTS = {
    "no TOML": ("language = 1", "language ="),
    "another version of the language": ("language = 1", "language = 2"),
    "an unknown key": ("[rules.H]", "[rules.H]\nsurprise = 1"),
    "an unknown section": ("[rules.H]", "[surprise]\nx = 1\n[rules.H]"),
    "an unknown kind": ('kind = "hypothesis"', 'kind = "hunch"'),
    "a number where text belongs": ('title = "A rule"', "title = 7"),
    "a Boolean where a number belongs": ("tasks = 5", "tasks = true"),
    "a text among the seeds": ("seeds = [0, 1]\nby", 'seeds = [0, "1"]\nby'),
    "an undeclared endpoint": ("mean(gap) > 0", "mean(gaap) > 0"),
    "an unknown operator": ("mean(gap) > 0", "median(gap) > 0"),
    "a test that is no test": ("mean(gap) > 0", "mean(gap)"),
    "an undeclared evaluation set": ('set = "validation"', 'set = "test"'),
    "an unknown register": ('register = "evaluations"', 'register = "diary"'),
    "an unknown column": ('count = "successes"', 'count = "wins"'),
    "an unknown column in a set": ('phase = "periodic"', 'phrase = "periodic"'),
    "an outcome of both kinds": ('of = "episodes" }', 'of = "episodes", figure = "calls" }'),
    "an unknown unit of analysis": ('by = "seed"', 'by = "mood"'),
    "an unknown summary of steps": ('over_steps = "auc"', 'over_steps = "median"'),
    "steps without a summary": ('over_steps = "auc"\n', ""),
    "steps that do not increase": ("steps = [0, 20]", "steps = [20, 0]"),
    "three arms in a contrast": (PLACE, PLACE.replace("]", ', "clean"]', 1)),
    "a range that does not rise": ('range = ["-1", "1"]', 'range = ["1", "-1"]'),
    "a range without numbers": ('range = ["-1", "1"]', 'range = ["-1", "much"]'),
    "an infinite range": ('range = ["-1", "1"]', 'range = ["-1", "inf"]'),
    "a run outside the matrix": (PLACE, PLACE.replace("1", "2")),
    "an unknown arm": (PLACE, PLACE.replace("independent", "alone")),
    "an interval of nothing": ('endpoint = "gap"', 'endpoint = "gaap"'),
    "a method that is not known": ('level = "0.95"', 'level = "0.95"\nmethod = "jackknife"'),
    "a level of one": ('level = "0.95"', 'level = "1"'),
    "a rule without criteria": (rule("H", "mean(gap) > 0"), rule("H")),
    "a criterion twice": (
        "[[rules.H.criteria]]",
        '[[rules.H.criteria]]\nid = "c0"\ntext = ""\ntest = "mean(gap) > 1"\n[[rules.H.criteria]]',
    ),
    "a rule that rests on itself": ("mean(gap) > 0", "passes(H)"),
    "a rule name that leads out of the site": ("[rules.H]", '[rules."../H"]'),
    "an endpoint name with a space": ("[endpoints.gap]", '[endpoints."ga p"]'),
    "a set without schedules": ("schedules = 2", ""),
    "a set of no tasks": ("tasks = 5", "tasks = 0"),
    "a setting that no run has": ('for = ["H"]', 'for = ["H"]\nfixed = { mood = "good" }'),
    "a setting that is no number": ('for = ["H"]', 'for = ["H"]\nfixed = { steps = "many" }'),
    "an expectation of a column that is none": ('by = "pooled"', 'by = "pooled"\nexpect = { wins = 1 }'),
    "an empty text": ('text = "Words."\n\n', 'text = ""\n\n'),
    "checkpoints of a register without them": ('by = "seed"', 'by = "checkpoint"\ncheckpoints = ["A@1"]'),
    "a series by seed of a register without runs": (
        'register = "evaluations"\nset = "validation"',
        'register = "probe"',
    ),
    "an arm twice": (PLACE, PLACE.replace("independent", "paired")),
    "a text column as outcome": ('count = "successes"', 'count = "regime"'),
    "a number column as condition": ('regime = "clean" }', 'step = "0" }'),
    "no steps where there are some": ('steps = [0, 20]\nover_steps = "auc"\n', ""),
    "steps pooled": ('by = "pooled"', 'by = "pooled"\nsteps = [0]'),
    "a threshold to wait for without waiting": ('unit = "fraction"', 'unit = "fraction"\nthreshold = "0.5"'),
    "an unknown arm in the matrix": ('arms = ["paired", "independent"]', 'arms = ["paired", "alone"]'),
    "a test that reads nothing": ("mean(gap) > 0", "1 > 0"),
    "no deciding roles": ('deciding_roles = ["primary"]', "deciding_roles = []"),
    "an unknown deciding role": ('deciding_roles = ["primary"]', 'deciding_roles = ["friend"]'),
    "a run twice in the matrix": ('condition = "Y"', 'condition = "X"'),
    "a fixed time": ('for = ["H"]', 'for = ["H"]\nfixed = { launched_at = "5" }'),
    "a value that its column never has": ('phase = "periodic"', 'phase = "nightly"'),
    "a negative step": ("steps = [0, 20]", "steps = [-20, 0]"),
    "a negative seed of the resampling": ("rng_seed = 1", "rng_seed = -1"),
    "an unknown generator": ("rng_seed = 1", 'rng_seed = 1\nrng = "dice"'),
    "an exception without a run": ("[[matrix]]", "[[exceptions]]\nrun = 5\n\n[[matrix]]"),
    "a step of many digits": ('by = "pooled"', f'by = "checkpoint"\ncheckpoints = ["A@{"9" * 5000}"]'),
    "a number of many digits": ("resamples = 10000", f"resamples = {'9' * 5000}"),
    "a gate to rest on": ("mean(gap) > 0", "passes(G)"),
    "a name that is endpoint and rule": ("[rules.H]", "[rules.gap]"),
    "a checkpoint without a step": ('by = "pooled"', 'by = "checkpoint"\ncheckpoints = ["A"]'),
    "pooling a figure": ('{ count = "spurious", of = "all_correct" }', '{ figure = "spurious" }'),
}
# What a rule may not say beside its text.
BESIDE = {
    "an undeclared estimate": 'estimate = "gaap"',
    "an undeclared interval beside a rule": 'interval = "gaap"',
    "a threshold that is no number": 'threshold = "three"',
    "gate outcomes on a hypothesis": 'open = "go"\nshut = "stay"',
    "a superseded hypothesis": 'superseded = "Why."',
    "readings without criteria of their own": READINGS,
    "a threshold that no test has": 'threshold = "0.5"',
    "a threshold with an exponent": 'threshold = "1e99999999"',
    "an interval without its estimate": 'interval = "gap_95"',
    "an interval of another endpoint": 'interval = "gap_95"\nestimate = "other"',
    "an empty name among the secondary": 'secondary = [""]',
}
TEXT = 'text = "Words."\n\n'
DEFECTS |= {name: (TEXT, f'text = "Words."\n{more}\n') for name, more in BESIDE.items()}


def test_the_rules_without_a_defect_load() -> None:
    assert list(load_rulebook(GOOD).rules) == ["H"]


@pytest.mark.parametrize(("good", "bad"), DEFECTS.values(), ids=DEFECTS)
def test_a_defect_is_refused(good: str, bad: str) -> None:
    assert good in GOOD
    with pytest.raises(RuleError) as caught:
        load_rulebook(GOOD.replace(good, bad))
    assert caught.value.exit_code == 4
    assert caught.value.problem


GAP = GOOD[GOOD.index("[endpoints.gap]") : GOOD.index("[endpoints.other]")]


REPLACES, RESTATES, OTHER = 'replaces = ["H"]', 'restates = ["H"]', rule("H", "mean(gap) > 1")


def test_an_amendment_replaces_the_rules_it_names() -> None:
    book = load_rulebook(GOOD, [amendment("A9", REPLACES, OTHER)])
    assert book.rules["H"].criteria[0].test == "mean(gap) > 1"
    change = book.changes["H"]
    assert (change.amendment, change.relation) == ("A9", "replaces")
    assert change.frozen.criteria[0].test == "mean(gap) > 0"


def test_an_amendment_can_restate_a_rule_it_does_not_change() -> None:
    text = amendment("A9", RESTATES, rule("H", "mean(gap) > 0"))
    assert load_rulebook(GOOD, [text]).changes["H"].relation == "restates"


@pytest.mark.parametrize(
    ("relations", "text"),
    [
        (REPLACES, rule("H2", "mean(gap) > 1")),
        ("", OTHER),
        ('replaces = ["H2"]', rule("H2", "mean(gap) > 1")),
        (REPLACES, rule("H", "mean(gaap) > 1")),
        (REPLACES, OTHER + "[surprise]\nx = 1\n"),
        # What is restated stays what it was.
        (RESTATES, OTHER),
        (RESTATES, rule("H", "mean(gap) > 0").replace("Words.", "Others.")),
        (f"{REPLACES}\nsurprise = 1", OTHER),
        ('replaces = [["H"]]', OTHER),
        # An endpoint that changes its meaning under a frozen rule would change that rule silently.
        ("", GAP.replace("seeds = [0, 1]", "seeds = [0]")),
        ("", '[intervals.gap_95]\nendpoint = "gap"\nlevel = "0.90"\n'),
    ],
)
def test_an_amendment_that_does_not_fit_is_refused(relations: str, text: str) -> None:
    with pytest.raises(RuleError):
        load_rulebook(GOOD, [amendment("A9", relations, text)])
