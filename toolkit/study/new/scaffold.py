"""The files that a new study begins with: registration, rules, mapping, card."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.study.new.outline import Outline

UNFILLED = "FILL IN"


def scaffold(outline: Outline, repository: str) -> dict[str, str]:
    """Return the text of every file of a new study, by its path in the project.

    Args:
        outline: what is known of the study.
        repository: where it will be published, as `owner/name`.
    """
    name = outline.name
    return {
        f"prereg/{name}/rules.toml": _rules(outline),
        f"prereg/{name}/protocol.md": PROTOCOL.format(name=name),
        f"mappings/{name}.toml": _mapping(outline),
        f"cards/{name}.md": CARD.replace("@name@", name).replace("@repository@", repository),
        "registers/.gitkeep": "",
    }


def _rules(outline: Outline) -> str:
    arms, condition = outline.arms[:2], outline.conditions[0]
    several = len(outline.steps) > 1
    over_steps = 'over_steps = "auc"\n' if several else ""
    what = "AUC of success over the steps" if several else "Success"
    return RULES.format(
        name=outline.name,
        arms=_list(outline.arms),
        regimes=_list(outline.regimes),
        pools=_list(outline.pools),
        matrix="\n".join(
            MATRIX.format(condition=each, arms=_list(outline.arms), seeds=_list(outline.seeds))
            for each in outline.conditions
        ),
        phase=outline.constants.get("phase", "final"),
        pool=outline.pools[0],
        regime=outline.regimes[0],
        tasks=outline.tasks,
        schedules=outline.schedules,
        what=what,
        first=arms[0],
        second=arms[1],
        condition=condition,
        two=_list(arms),
        seeds=_list(outline.seeds),
        steps=_list(outline.steps),
        over_steps=over_steps,
    )


def _mapping(outline: Outline) -> str:
    values = "".join(
        f"\n# A word of the table = a word of [words] in the rules.\n[values.{target}]\n{_pairs(words)}"
        for target, words in outline.values.items()
    )
    return MAPPING.format(
        name=outline.name,
        columns=_pairs(outline.columns),
        constants=_pairs(outline.constants),
        values=values,
    )


def _pairs(pairs: Mapping[str, str]) -> str:
    return "".join(f"{_key(name)} = {_quoted(value)}\n" for name, value in pairs.items())


def _key(name: str) -> str:
    return name if name.replace("_", "").isascii() and name.replace("_", "").isalnum() else _quoted(name)


def _list(values: Iterable[object]) -> str:
    return "[" + ", ".join(_quoted(v) if isinstance(v, str) else str(v) for v in values) + "]"


def _quoted(text: str) -> str:
    """Return a TOML string."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


RULES = """\
# What is measured, and what decides. Numbers are decimal strings, or stand in tests.
# `toolkit explain --language` lists the operators of tests, `toolkit registers schema` tables and columns.
# Everything here is frozen by `toolkit freeze {name}`, before the runs that it decides on.

language = 1
name = "{name}"
title = "FILL IN: the study in one line"
deciding_roles = ["primary"]

# The words of this study. Rows that say another word are refused.
[words]
arm = {arms}
regime = {regimes}
pool = {pools}

# The runs: condition x arm x seed.
{matrix}
# Evaluations that belong together; a complete one has tasks x schedules episodes.
[sets.main]
where = {{ phase = "{phase}", pool = "{pool}", regime = "{regime}" }}
tasks = {tasks}
schedules = {schedules}

# What is measured: {first} minus {second}, seed by seed.
[endpoints.gap]
title = "{what}, {first} minus {second}"
register = "evaluations"
outcome = {{ count = "successes", of = "episodes" }}
set = "main"
condition = "{condition}"
arms = {two}
seeds = {seeds}
by = "seed"
steps = {steps}
{over_steps}unit = "fraction"
range = ["-1", "1"]

# Shown beside the verdict: seeds are drawn as pairs, and tasks with all their schedules.
[interval_method]
method = "percentile bootstrap"
resamples = 10000
resampled = ["seed pairs", "tasks with all their schedules"]

[interval_conventions]
crossing = "crossed"
rng_seed = 1

[intervals.gap_95]
endpoint = "gap"
level = "0.95"

# A hypothesis passes when every criterion holds. `toolkit power H1 --study {name}` says what it could see.
[rules.H1]
kind = "hypothesis"
title = "FILL IN: in a few words"
text = "FILL IN: the rule in words."
estimate = "gap"
interval = "gap_95"
threshold = "0.05"       # what the interval is held against, and where `toolkit power` looks

[[rules.H1.criteria]]
id = "mean"
text = "FILL IN: as the test says. The mean difference is at least 0.05."
test = "mean(gap) >= 0.05"

[[rules.H1.criteria]]
id = "every_seed"
text = "FILL IN: as the test says. It is positive for every seed."
test = "each(gap > 0)"
"""

MATRIX = """\
[[matrix]]
tier = 1
condition = "{condition}"
noise = "FILL IN: what the runs of {condition} work under"
arms = {arms}
seeds = {seeds}
for = ["H1"]
"""

PROTOCOL = """\
# {name}: the registered protocol

`rules.toml` holds the rules in a form that a machine executes; this page says the rest, for people.

## Question

FILL IN: what is asked, and what would count as an answer.

## Runs

FILL IN: what a run is, what its arms do, what the seeds decide, what is fixed.

## Tasks and episodes

FILL IN: which tasks, how many, how success is established, what differs between the schedules of a task.

## Analysis

FILL IN: the endpoints and rules of `rules.toml` in words, and what becomes of runs that fail.

## What is known already

FILL IN: which data had been seen when this was written.
"""

MAPPING = """\
# How a table of episodes becomes registers: one row of it is one episode.
# `toolkit registers schema runs episodes` says what every column of the registers means.

language = 1
study = "{name}"
registration = "{name}"

# Column of the registers = column of the table. Left out, run_id is made of condition, arm and seed, and
# schedule numbers a task's episodes in the order of the table.
[columns]
{columns}
# What is the same in every row.
[constants]
{constants}{values}"""

CARD = """\
---
pretty_name: "FILL IN: the study in one line"
license: cc-by-4.0
language:
- en
size_categories:
- {{size_category}}
tags:
- pre-registration
- reproducibility
{{configs}}
{{dataset_info}}
---

# FILL IN: the study in one line

FILL IN: one paragraph: what was asked, what was run, what a row is.

{{overview}}

## Load

```python
from datasets import load_dataset

episodes = load_dataset("@repository@", "episodes", split="train")
```

```sql
-- DuckDB
SELECT * FROM 'hf://datasets/@repository@/evaluations/*.parquet';
```

```python
import polars as pl

episodes = pl.scan_parquet("hf://datasets/@repository@/episodes/*.parquet")
```

```sh
pip install paired-rollouts-toolkit
toolkit decide --all --study @repository@
toolkit sql "FROM evaluations" --study @repository@
```

## What was registered, run and decided

{{registration}}

{{matrix}}

{{outcomes}}

The registration lies in `prereg/`: rules, protocol, and the tokens over them.

## How it was made

FILL IN: which code, which models, which machine, when. `source/mapping.toml` says how the table of episodes
became these registers, and `source/table.json` which table it was.

## Columns

Schema {{schema_version}}.

{{tables}}

## Limits

FILL IN: what these rows cannot say, and what they must not be used for.

## Citation

FILL IN: how to cite this.
"""
