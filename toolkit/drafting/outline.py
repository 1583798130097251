"""A new study before its owner says more: what can be read off a table."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.resources import files
from math import ceil, floor

import polars as pl

from toolkit.errors import UsageError
from toolkit.registers.columns import EXCLUDED, FAILURE
from toolkit.registers.episode_counts import OUTCOMES
from toolkit.registers.importing import source
from toolkit.registers.importing.source import Log
from toolkit.rules.endpoints import T_OVER_SEEDS, T_OVER_TASKS
from toolkit.rules.sections import IDENTIFIER
from toolkit.rules.terms import TAKEN

NAMES = {
    "run_id": ("run_id", "run", "run_name"),
    "condition": ("condition", "setting", "environment", "env"),
    "arm": ("arm", "variant", "treatment", "method", "algorithm", "agent", "policy", "strategy", "model"),
    "seed": ("seed", "rng", "rng_seed", "random_seed", "run_seed"),
    "step": ("step", "training_step", "global_step", "iteration", "epoch"),
    "pool": ("pool", "split"),
    "regime": ("regime", "noise", "difficulty"),
    "task": (
        *("task", "task_id", "problem", "problem_id", "question", "question_id", "item", "instance"),
        *("sample_id", "doc_id", "example_id"),
    ),
    "schedule": ("schedule", "trial", "repeat", "repetition", "sample", "attempt", "rollout"),
    "schedule_seed": ("schedule_seed",),
    "true_success": ("true_success", "success", "solved", "correct", "passed", "is_correct", "resolved"),
    "score": ("score", "reward", "accuracy", "acc", "value"),
    "observed_reward": ("observed_reward", "graded", "observed_success"),
    "calls": ("calls", "tool_calls", "n_calls"),
    "tokens": ("tokens", "total_tokens", "n_tokens"),
    "cost": ("cost", "total_cost", "cost_usd"),
    "launched_at": ("launched_at", "started_at", "started", "start_time"),
    "prompt": ("prompt", "question_text"),
}
"""Column of the registers → names that tables have for it, the likeliest first."""

CONSTANTS = {
    "condition": "main",
    "seed": "0",
    "role": "primary",
    "status": "COMPLETE",
    "phase": "final",
    "pool": "tasks",
    "regime": "standard",
    "step": "0",
}
"""What a study without such a column says in every row."""

ASKED = ("arm", "task")
"""What a study has to say in each row, beside an outcome."""

OF_PILOT = "\n# FILL IN: these numbers are the log's. Say those of the study, and delete this line."

OPTIONS = {"arm": "arm", "task": "task", "true_success": "success"}

# A column with more different values than this is no list of arms, pools or regimes.
MOST_WORDS = 20
_ARMS = 2
_PLACE = ("condition", "arm", "seed", "pool", "regime", "step")


@dataclass(frozen=True)
class Outline:
    """A new study as far as it is known."""

    name: str  # its name
    columns: dict[str, str]  # column of the registers → column of the table
    constants: dict[str, str]  # column of the registers → the value of all rows
    values: dict[str, dict[str, str]]  # column → word of the table → another word of the registers
    conditions: tuple[str, ...]  # conditions, arms, pools, regimes: its words
    arms: tuple[str, ...]
    pools: tuple[str, ...]
    regimes: tuple[str, ...]
    seeds: tuple[int, ...]  # seeds, steps: of its runs and evaluations
    steps: tuple[int, ...]
    tasks: int  # tasks of an evaluation
    schedules: int  # episodes of an evaluation on each task
    unused: tuple[str, ...] = ()  # columns of the table that are none of the registers', by their names
    scores: tuple[int, int] | None = None  # whole numbers around the scores of the log, where it has scores
    seen: tuple[float, float] | None = None  # the lowest and the highest score of the log
    attributes: Mapping[str, str] = field(default_factory=dict)  # attribute of a task → column of the table
    words_of_attributes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # → word → tasks
    is_of_log: bool = False  # whether it was read off a log, and not made up
    # Arm and seed → how many episodes the log has with an outcome, of as many as any of them could have
    coverage: Mapping[tuple[str, str], int] = field(default_factory=dict)
    episodes: int = 0


def blank(name: str) -> Outline:
    """Return the outline of a study of which nothing is known: two arms, three seeds, one evaluation."""
    asked = [*ASKED, "seed", "true_success"]
    return Outline(
        name=name,
        columns={target: target for target in asked},
        constants={name: value for name, value in CONSTANTS.items() if name not in asked},
        values={},
        conditions=("main",),
        arms=("control", "treatment"),
        pools=("tasks",),
        regimes=("standard",),
        seeds=(0, 1, 2),
        steps=(0,),
        tasks=50,
        schedules=1,
    )


def outlined(
    name: str,
    log: Log,
    given: Mapping[str, str] | None = None,
    attributes: Sequence[str] = (),
    baseline: str | None = None,
) -> Outline:
    """Return the outline of a study whose log of episodes, or of a pilot's, is at hand."""
    columns = _columns(log, given or {}, attributes)
    table = log.measured(columns)
    constants = {target: value for target, value in CONSTANTS.items() if target not in columns}
    if "step" in columns:
        constants["phase"] = "periodic"
    words = {
        name: _words(table, columns[name], name) if name in columns else {constants[name]: constants[name]}
        for name in ("condition", "arm", "pool", "regime")
    }
    named = _named(attributes)
    told = {name: _words(table, column, name) for name, column in named.items()}
    key = [columns[name] for name in ("run_id", *_PLACE) if name in columns]
    # The rules that are written compare evaluations on the first pool, in the first regime and condition.
    divided = [target for target in ("condition", "pool", "regime") if target in columns]
    shown = table.drop_nulls([columns[target] for target in divided])
    for target in divided:  # not every pool has every regime: the first is one that occurs
        there = set(shown[columns[target]].cast(pl.String))
        first = next((text for text in words[target] if text in there), None)
        words[target] = dict(sorted(words[target].items(), key=lambda item: item[0] != first))
        shown = shown.filter(pl.col(columns[target]).cast(pl.String) == first)
    coverage = _coverage(shown, columns, words["arm"])
    if "schedule" in columns:  # attempts at an episode are one
        places = [columns[name] for name in (*_PLACE, "task", "schedule") if name in columns]
        shown = shown.unique(places, keep="last", maintain_order=True)
    seen = _range(table[columns["score"]]) if "score" in columns else None
    tasks = shown.group_by(key).agg(tasks=pl.col(columns["task"]).n_unique()).get_column("tasks").max()
    times = shown.group_by([*key, columns["task"]]).len().get_column("len")
    trials = times.mode().max()  # most tasks have as many: one more is a row that is there twice
    return Outline(
        name=name,
        columns=columns,
        constants=constants,
        values={
            target: {text: word for text, word in mapped.items() if text != word}
            for target, mapped in {**words, **told}.items()
            if target in {**columns, **named} and any(text != word for text, word in mapped.items())
        },
        conditions=tuple(words["condition"].values()),
        arms=_arms_from(baseline, words["arm"]),
        pools=tuple(words["pool"].values()),
        regimes=tuple(words["regime"].values()),
        seeds=_numbers(table, columns, "seed") if "seed" in columns else (0,),
        steps=_numbers(shown, columns, "step") if "step" in columns else (0,),
        tasks=int(str(tasks)),
        schedules=int(str(trials)),
        is_of_log=True,
        coverage=coverage,
        episodes=_episodes(shown, columns),
        scores=None if seen is None else (min(0, floor(seen[0])), max(1, ceil(seen[1]))),
        seen=seen,
        unused=tuple(
            name for name in table.columns if name not in {source.ROW, *columns.values(), *attributes}
        ),
        attributes=named,
        words_of_attributes={
            name: {
                word: shown.filter(pl.col(named[name]).cast(pl.String) == text)[columns["task"]].n_unique()
                for text, word in mapped.items()
            }
            for name, mapped in told.items()
        },
    )


def _arms_from(baseline: str | None, words: Mapping[str, str]) -> tuple[str, ...]:
    """Return the arms, the one that the others are compared with first."""
    first = next(iter(words.values())) if baseline is None else words.get(baseline, baseline)
    if first not in words.values():
        raise UsageError("the log has no such arm", expected=", ".join(words), found=baseline)
    return (first, *(word for word in words.values() if word != first))


def _coverage(
    table: pl.DataFrame, columns: Mapping[str, str], arms: Mapping[str, str]
) -> dict[tuple[str, str], int]:
    """Count the episodes with an outcome of each arm and seed; of a seed that an arm lacks there is none."""
    outcomes = [columns[name] for name in OUTCOMES if name in columns]
    arm = pl.col(columns["arm"]).cast(pl.String)
    seed = pl.col(columns["seed"]).cast(pl.String) if "seed" in columns else pl.lit(CONSTANTS["seed"])
    table = table.with_columns(source.without_nothing(table[name]) for name in outcomes)
    there = pl.all_horizontal(pl.col(name).is_not_null() for name in outcomes)
    counted = table.group_by(arm.alias("arm"), seed.alias("seed")).agg(there.sum().alias("there"))
    found = {(arms[row["arm"]], row["seed"]): row["there"] for row in counted.drop_nulls().to_dicts()}
    if not any(found.values()):
        raise UsageError(
            "no episode of the log has an outcome",
            expected="a value in some row",
            found=f"none under {', '.join(outcomes)}",
            remedy="say which column has it: --success COLUMN, or --score COLUMN",
        )
    seeds = sorted({of for _, of in found}, key=lambda text: (len(text), text))
    return {(name, of): found.get((name, of), 0) for name in arms.values() for of in seeds}


def _episodes(table: pl.DataFrame, columns: Mapping[str, str]) -> int:
    """Return how many episodes an arm with a seed would have, with all that any of them has."""
    of_task = [columns[name] for name in ("step", "task") if name in columns]
    of_run = [columns[name] for name in ("arm", "seed") if name in columns]
    trials = table.group_by([*of_run, *of_task]).len().group_by(of_task).max().get_column("len")
    return int(trials.sum())


def _named(attributes: Sequence[str]) -> dict[str, str]:
    """Return attributes by the names that rules can have for them, each with its column."""
    named = {re.sub(r"\W+", "_", column, flags=re.ASCII).strip("_"): column for column in attributes}
    wrong = [column for name, column in named.items() if name in TAKEN or not IDENTIFIER.fullmatch(name)]
    if wrong or len(named) < len(attributes):
        raise UsageError(
            "an attribute of tasks has no name of its own",
            expected="a column whose name begins with a letter, and is none of the registers' columns",
            found=", ".join(wrong or attributes),
            remedy="name it under [attributes] of the mapping and of the rules, by hand",
        )
    return named


def _columns(log: Log, given: Mapping[str, str], attributes: Sequence[str] = ()) -> dict[str, str]:
    """Return which column of a log is which: as its owner says, or by their names and contents."""
    table = log.table
    headers = [name for name in table.columns if name != source.ROW]
    unknown = [column for column in (*given.values(), *attributes) if column not in headers]
    if unknown:
        raise UsageError(
            f"the log has no column {unknown[0]!r}", expected=", ".join(headers), found=", ".join(unknown)
        )
    plain = {re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_"): name for name in headers}
    taken = {*given.values(), *attributes}
    matching = {
        target: [plain[name] for name in names if name in plain and plain[name] not in taken]
        for target, names in NAMES.items()
    }
    columns = {target: likely[0] for target, likely in matching.items() if likely} | dict(given)
    twice = [column for column, times in Counter(given.values()).items() if times > 1]
    if twice:
        raise UsageError("two options name one column", expected="a column each", found=", ".join(twice))
    if "arm" not in given and (arms := _arms(log, columns)):
        columns = {target: column for target, column in columns.items() if column not in arms.values()} | arms
    if not _names_runs(table, columns):
        del columns["run_id"]
    _choose_outcome(table, columns, given)
    absent = [target for target in ASKED if target not in columns]
    if "true_success" not in columns and "score" not in columns:
        absent.append("true_success")
    if absent:
        option = OPTIONS[absent[0]]
        raise UsageError(
            f"no column of the log has a name that says it is the {absent[0]}",
            expected="; ".join(f"{target}: {', '.join(NAMES[target])}" for target in absent),
            found=", ".join(headers),
            remedy=f"say which it is: --{option} COLUMN"
            + (", or --score COLUMN" if absent[0] == "true_success" else ""),
        )
    return columns


def _arms(log: Log, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the column with the arms, where none has its name: the one in which the runs of a log differ."""
    named = columns.get("arm")
    if named and log.table[named].n_unique() >= _ARMS:
        return {}
    differ = [name for name in log.of_run if _ARMS <= log.table[name].n_unique() <= MOST_WORDS]
    # What tells the runs apart in the same way, such as a model and its file, is one column: the first.
    told = [
        name
        for name in differ
        if not any(_same(log.table, [name], [other]) for other in differ[: differ.index(name)])
    ]
    # What says the arm and the seed in one, such as a run's name, says no arm.
    seed = [columns["seed"]] if "seed" in columns else []
    sizes = {name: log.table[name].n_unique() for name in told}
    told = [
        name
        for name in told
        if not any(sizes[arm] < sizes[name] and _same(log.table, [name], [arm, *seed]) for arm in told)
    ]
    if len(told) > 1:
        raise UsageError(
            "the runs of the log differ in more than one column",
            expected="one column of arms",
            found=", ".join(told),
            remedy=f"say which it is: --arm {told[0]}",
        )
    return {"arm": told[0]} if told else {}


def _same(table: pl.DataFrame, one: list[str], other: list[str]) -> bool:
    both = table.select({*one, *other}).n_unique()
    return both == table.select(one).n_unique() == table.select(other).n_unique()


def _choose_outcome(table: pl.DataFrame, columns: dict[str, str], given: Mapping[str, str]) -> None:
    """Keep a success that is one, and a score that is more than that; or what was asked for."""
    if "score" in given or "true_success" in given:
        other = "true_success" if "score" in given else "score"
        if other not in given:
            columns.pop(other, None)
    elif "true_success" in columns and source.is_truth(table[columns["true_success"]]):
        if "score" in columns and not is_score(table[columns["score"]]):
            columns.pop("score")
    elif "score" in columns or "true_success" in columns:
        column = columns.pop("score", None) or columns["true_success"]
        columns.pop("true_success", None)
        columns["true_success" if source.is_truth(table[column]) else "score"] = column


def is_score(cells: pl.Series) -> bool:
    """Whether all that a column says is numbers, and they are more than yes and no."""
    if cells.dtype.is_nested() or cells.dtype.is_temporal() or source.is_truth(cells):
        return False
    there = source.without_nothing(cells).drop_nulls()
    return bool(len(there)) and not source.as_numbers(there).null_count()


def _range(cells: pl.Series) -> tuple[float, float]:
    """Return the lowest and the highest score of a column."""
    finite = source.as_numbers(cells).drop_nulls()
    if not len(finite):
        raise UsageError(
            f"column {cells.name!r} does not hold the scores of a study",
            expected="numbers",
            found=", ".join(map(str, cells.head(3).to_list())),
            remedy="say which column it is: --score COLUMN",
        )
    return float(str(finite.min())), float(str(finite.max()))


def _names_runs(table: pl.DataFrame, columns: dict[str, str]) -> bool:
    """Whether the column taken for the runs' names tells them apart: others call a repetition a run."""
    if "run_id" not in columns:
        return True
    if columns["run_id"] == columns.get("arm"):
        return False
    key = [columns[name] for name in ("condition", "arm", "seed") if name in columns]
    if not key:
        return True
    places = table.group_by(columns["run_id"]).agg(pl.struct(key).n_unique().alias("places"))
    return bool((places["places"] == 1).all())


def _words(table: pl.DataFrame, column: str, target: str) -> dict[str, str]:
    """Return the words of a column, each with the word that registers can have for it."""
    texts = table[column].drop_nulls().cast(pl.String).unique().sort().to_list()
    words = [re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") for text in texts]
    words = [
        word if word[:1].isalpha() else f"{target}_{word or number}"
        for number, word in enumerate(words, start=1)
    ]
    least = _ARMS if target == "arm" else 1
    if not least <= len(texts) <= MOST_WORDS or len(set(words)) < len(words):
        raise UsageError(
            f"column {column!r} does not hold the {target}s of a study",
            expected=f"{least} to {MOST_WORDS} words that can be told apart",
            found=", ".join(texts[:5]) + (", ..." if len(texts) > 5 else ""),  # noqa: PLR2004 - to be read
            remedy="say which column it is, as --arm COLUMN; or leave out --table, and name it in the "
            "mapping",
        )
    return dict(zip(texts, words, strict=True))


def _numbers(table: pl.DataFrame, columns: dict[str, str], target: str) -> tuple[int, ...]:
    cells = table[columns[target]].cast(pl.String, strict=False).str.replace(r"\.0+$", "")
    read = cells.cast(pl.Int64, strict=False)
    numbers = read.drop_nulls().unique().sort().to_list()
    if not numbers or numbers[0] < 0 or (read.is_null() & cells.is_not_null()).any():
        raise UsageError(
            f"column {columns[target]!r} does not hold the {target}s of a study",
            expected="whole numbers from 0",
            found=", ".join(map(str, numbers[:3] or table[columns[target]].head(3).to_list())),
            remedy=f"say which column has them, or number the {target}s from 0",
        )
    return tuple(numbers)


_SEVERAL = 2
DRAFTED_MOST = 0.05
"""Share of an evaluation's episodes that a draft lets be missing."""


def scaffold(outline: Outline, repository: str) -> dict[str, str]:
    """Return the text of every file of a new study, by its path in the project."""
    name = outline.name
    return {
        f"prereg/{name}/rules.toml": _rules(outline),
        f"prereg/{name}/protocol.md": _template("protocol").format(name=name),
        f"mappings/{name}.toml": _mapping(outline),
        f"cards/{name}.md": _template("card").replace("@name@", name).replace("@repository@", repository),
        "registers/.gitkeep": "",
    }


def _template(name: str) -> str:
    return (files(__package__) / "templates" / f"{name}.txt").read_text(encoding="utf-8")


def _interval(outline: Outline) -> tuple[str, str]:
    """Return the method whose level holds for the design, and why, as measured in the estimators' README."""
    if outline.tasks < _SEVERAL <= len(outline.seeds):
        return T_OVER_SEEDS, "There is one task: seeds are the sample, and nothing is said of other tasks."
    if len(outline.seeds) < _SEVERAL:
        return T_OVER_TASKS, "There is one seed: tasks are the sample, and nothing is said of other seeds."
    if len(outline.steps) < _SEVERAL:
        return T_OVER_TASKS, (
            "No training is seen: tasks are the sample, seeds play them again. For seeds that are training "
            f"runs, {T_OVER_SEEDS!r}."
        )
    return T_OVER_SEEDS, (
        "Every seed is a training run of its own: they are the sample, on these tasks. An interval over "
        "tasks would be too narrow."
    )


@dataclass(frozen=True)
class _Contrast:
    """One comparison that is drafted: an arm with the baseline, in one outcome."""

    rule: str
    gap: str  # name of its endpoint
    arm: str
    metric: str  # success, or score


def _contrasts(outline: Outline) -> list[_Contrast]:
    """Return every other arm against the first, in every outcome of the log."""
    _, *others = outline.arms
    outcomes = (("success", "true_success"), ("score", "score"))
    metrics = [metric for metric, column in outcomes if column in outline.columns]
    many, several = len(others) > 1, len(metrics) > 1
    pairs = [(arm, metric) for metric in metrics for arm in others]
    return [
        _Contrast(f"H{n}", "_".join(["gap", *[arm] * many, *[metric] * several]), arm, metric)
        for n, (arm, metric) in enumerate(pairs, 1)
    ]


def _rules(outline: Outline) -> str:
    contrasts = _contrasts(outline)
    low, high = outline.scores or (0, 1)
    seen = (
        "" if outline.seen is None else f"; the log's lie between {outline.seen[0]:g} and {outline.seen[1]:g}"
    )
    scores = (
        "# What an episode can score.\n"
        f"# FILL IN: the lowest and the highest score that there can be{seen}.\n"
        f'[scores]\nrange = ["{low}", "{high}"]\n\n'
        if outline.scores
        else ""
    )
    rules = _list(each.rule for each in contrasts)
    return _template("rules").format(
        name=outline.name,
        of_pilot=OF_PILOT if outline.is_of_log else "",
        arms=_list(outline.arms),
        regimes=_list(outline.regimes),
        pools=_list(outline.pools),
        matrix="\n".join(
            _template("matrix").format(
                condition=each, arms=_list(outline.arms), seeds=_list(outline.seeds), rules=rules
            )
            for each in outline.conditions
        ),
        phase=outline.constants.get("phase", "final"),
        pool=outline.pools[0],
        regime=outline.regimes[0],
        tasks=outline.tasks,
        schedules=outline.schedules,
        scores=scores,
        counts_as=FAILURE if contrasts[0].metric == "success" else EXCLUDED,
        lacking=_lacking(outline),
        attributes=_attributes(outline),
        families=_family(outline, contrasts),
        contrasts="".join(_contrast(outline, each, contrasts) for each in contrasts),
    )


_ADJUSTED = "0.05"


def _family(outline: Outline, contrasts: Sequence[_Contrast]) -> str:
    """Return what adjusts several comparisons for each other: tests over tasks can, those of seeds not."""
    if len(contrasts) < _SEVERAL:
        return ""
    said = (
        "\n# Every other arm against the first, in every outcome. For a single primary comparison, keep its\n"
        "# endpoint, interval and rule, and delete the others{and_this}.\n"
    )
    if _interval(outline)[0] != T_OVER_TASKS:
        return said.format(and_this="; its level is 0.95 then (Bonferroni's is drafted)")
    tests = _list(f"{each.gap}_p" for each in contrasts)
    family = f'[families.comparisons]\ntests = {tests}\nmethod = "holm"\n'
    return said.format(and_this=" and this family") + family


def _contrast(outline: Outline, contrast: _Contrast, all_of_them: Sequence[_Contrast]) -> str:
    method, why = _interval(outline)
    several = len(outline.steps) >= _SEVERAL
    is_score = contrast.metric == "score"
    low, high = (outline.scores or (0, 1)) if is_score else (0, 1)
    what = f"AUC of {contrast.metric} over the steps" if several else contrast.metric.capitalize()
    many = len(all_of_them) > 1
    gap, tested = contrast.gap, many and method == T_OVER_TASKS
    level = 1 - Fraction(_ADJUSTED) / (1 if tested else len(all_of_them))
    test = f'\n[tests.{gap}_p]\nendpoint = "{gap}"\nmethod = "wilcoxon"\nover = "tasks"\n'
    test += 'alternative = "greater"\nzeros = "dropped"\n'
    lead = f"# {why}\n# `toolkit explain --language` lists the methods, and what each assumes.\n"
    return _template("contrast").format(
        name=outline.name,
        rule=contrast.rule,
        gap=gap,
        title=f"{contrast.arm} above {outline.arms[0]} in {contrast.metric}",
        what=what,
        first=contrast.arm,
        second=outline.arms[0],
        outcome='{ sum = "score", of = "episodes" }'
        if is_score
        else '{ count = "successes", of = "episodes" }',
        condition=outline.conditions[0],
        two=_list((contrast.arm, outline.arms[0])),
        seeds=_list(outline.seeds),
        steps=_list(outline.steps),
        over_steps='over_steps = "auc"\n' if several else "",
        unit="score/episodes" if is_score else "fraction",
        low=low - high,
        high=high - low,
        missing=f'\nmissing = "{EXCLUDED}"' if is_score and all_of_them[0].metric == "success" else "",
        why=lead if contrast is all_of_them[0] else "",
        level=f"{float(level):.4f}".rstrip("0"),
        method=method,
        test=test if tested else "",
        found=f"Adjusted for the others, the test finds {contrast.arm} above {outline.arms[0]}."
        if tested
        else "The interval lies above zero.",
        found_test=f"adjusted({gap}_p) < {_ADJUSTED}" if tested else f"lower({gap}_95) > 0",
        threshold=f"{(high - low) / 20:g}",
    )


def _lacking(outline: Outline) -> str:
    """Return what the log lacks of an arm with a seed, where that is more than the draft allows."""
    lacking = {at: 1 - there / outline.episodes for at, there in outline.coverage.items() if there}
    (arm, seed), most = max(lacking.items(), key=lambda item: item[1], default=(("", ""), 0.0))
    if most <= DRAFTED_MOST:
        return ""
    return f"  # FILL IN: the log lacks {most:.1%} of {arm}, seed {seed}: with so much nothing is decided"


def _attributes(outline: Outline) -> str:
    """Return the section of attributes, with a set of some tasks to be uncommented."""
    if not outline.words_of_attributes:
        return ""
    name, counted = next(iter(outline.words_of_attributes.items()))
    word, tasks = next(iter(counted.items()))
    return _template("attributes").format(
        attributes="".join(
            f"{each} = {_list(words)}\n" for each, words in outline.words_of_attributes.items()
        ),
        name=name,
        word=word,
        tasks=tasks,
        schedules=outline.schedules,
        phase=outline.constants.get("phase", "final"),
        pool=outline.pools[0],
        regime=outline.regimes[0],
    )


def _mapping(outline: Outline) -> str:
    values = "".join(
        f"\n# A word of the table = a word of [words] in the rules.\n[values.{target}]\n{_pairs(words)}"
        for target, words in outline.values.items()
    )
    if outline.attributes:
        told = "# Attribute of a task, as [attributes] of the rules declares it = column of the table."
        values = f"\n{told}\n[attributes]\n{_pairs(outline.attributes)}{values}"
    return _template("mapping").format(
        name=outline.name, columns=_pairs(outline.columns), constants=_pairs(outline.constants), values=values
    )


def _pairs(pairs: Mapping[str, str]) -> str:
    return "".join(f"{_key(name)} = {_quoted(value)}\n" for name, value in pairs.items())


def _key(name: str) -> str:
    return name if name.replace("_", "").isascii() and name.replace("_", "").isalnum() else _quoted(name)


def _list(values: Iterable[object]) -> str:
    return "[" + ", ".join(_quoted(v) if isinstance(v, str) else str(v) for v in values) + "]"


def _quoted(text: str) -> str:
    """Return a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
