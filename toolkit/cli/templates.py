"""Texts to be filled in: rules, an amendment, a deviation. What is left as it is, is refused."""

from __future__ import annotations

RULES = """\
# What is measured, and what decides. Numbers are decimal strings, or stand in tests.
# `toolkit explain --language` lists the operators of tests, `toolkit registers schema` tables and columns.

language = 1
name = "{name}"          # of the folder, too
title = "FILL IN: the study in one line"
deciding_roles = ["primary"]

# The runs: condition x arm x seed. Arms are clean, paired, independent, blocking, blocking_paired.
[[matrix]]
tier = 1
condition = "C1"
noise = "FILL IN: what the runs train under"
fixed = {{ fault_rate = "0.25" }}   # columns of `runs`, and the values that a run must have to count
arms = ["paired", "independent"]
seeds = [0, 1, 2]
scale_rewards = "group"
for = ["H1"]

# Evaluations that belong together; a complete one has tasks x schedules episodes.
[sets.noisy_validation]
where = {{ phase = "periodic", pool = "validation", regime = "faults_p025" }}
tasks = 64
schedules = 2

# What is measured. Two arms: first minus second, seed by seed. Units follow from the outcome.
[endpoints.c1_auc]
title = "AUC on noisy validation, paired minus independent"
register = "evaluations"
outcome = {{ count = "successes", of = "episodes" }}
set = "noisy_validation"
condition = "C1"
arms = ["paired", "independent"]
seeds = [0, 1, 2]
by = "seed"
steps = [0, 20, 40, 60, 80, 100]
over_steps = "auc"
unit = "fraction"
range = ["-1", "1"]

# A hypothesis passes when every criterion holds.
[rules.H1]
kind = "hypothesis"
title = "FILL IN: in a few words"
text = "FILL IN: the rule in words."
estimate = "c1_auc"

[[rules.H1.criteria]]
id = "mean"
text = "The mean difference is at least 0.03."
test = "mean(c1_auc) >= 0.03"

[[rules.H1.criteria]]
id = "every_seed"
text = "It is positive for every seed."
test = "each(c1_auc > 0)"
"""

AMENDMENT = """\
# An amendment changes rules before the data that it concerns. New endpoints, intervals and rules are written
# as in rules.toml.

[amendment]
id = "A1"
dated = "{today}"
title = "FILL IN: what it is about, in a few words"
seen = "FILL IN: what had been seen of the data when this was written."
reason = "FILL IN: why the frozen text cannot stand."
changes = ["FILL IN: what is different now."]
replaces = ["H1"]        # each rule below is named in exactly one of these lists
# restates = ["H2"]      # unchanged in text and numbers, and reads what is new here
# adds = ["H3"]          # there was no such rule

[rules.H1]
kind = "hypothesis"
title = "FILL IN: as in rules.toml"
text = "FILL IN: the rule in words."

[[rules.H1.criteria]]
id = "mean"
text = "The mean difference is at least 0.03."
test = "mean(c1_auc) >= 0.03"
"""

DEVIATION = """\
# A deviation records an event that departs from the protocol. It changes no rule.

[deviation]
id = "D1"
dated = "{today}"
kind = "deviation"
title = "FILL IN: what happened, in a few words"
text = "FILL IN: what happened, and what it may have changed."
seen = "FILL IN: what had been seen of the data when this was recorded."
concerns = ["H1"]
"""
