"""A new study before its owner says more: what can be read off a table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from math import ceil, floor

import polars as pl

from toolkit.errors import UsageError
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
    attributes: Mapping[str, str] = field(default_factory=dict)  # attribute of a task → column of the table
    words_of_attributes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # → word → tasks
    is_of_log: bool = False  # whether it was read off a log, and not made up


def blank(name: str) -> Outline:
    """Return the outline of a study of which nothing is known: two arms, three seeds, one evaluation."""
    asked = [*ASKED, "seed", "true_success"]
    return Outline(
        name=name,
        columns={target: target for target in asked},
        constants={name: value for name, value in CONSTANTS.items() if name not in asked},
        values={},
        conditions=("main",),
        arms=("treatment", "control"),
        pools=("tasks",),
        regimes=("standard",),
        seeds=(0, 1, 2),
        steps=(0,),
        tasks=50,
        schedules=1,
    )


def outlined(
    name: str, log: Log, given: Mapping[str, str] | None = None, attributes: Sequence[str] = ()
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
    shown = table
    for target in ("condition", "pool", "regime"):
        if target in columns:
            shown = shown.filter(pl.col(columns[target]).cast(pl.String) == next(iter(words[target])))
    tasks = shown.group_by(key).agg(tasks=pl.col(columns["task"]).n_unique()).get_column("tasks").max()
    trials = shown.group_by([*key, columns["task"]]).len().get_column("len").max()
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
        arms=tuple(words["arm"].values()),
        pools=tuple(words["pool"].values()),
        regimes=tuple(words["regime"].values()),
        seeds=_numbers(table, columns, "seed") if "seed" in columns else (0,),
        steps=_numbers(table, columns, "step") if "step" in columns else (0,),
        tasks=int(str(tasks)),
        schedules=int(str(trials)),
        is_of_log=True,
        scores=_range(table[columns["score"]]) if "score" in columns else None,
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
    if "arm" not in given:
        columns |= _arms(log, columns)
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
    """Keep one outcome: a success that is one, or else the score."""
    if "score" in given or "true_success" in given:
        other = "true_success" if "score" in given else "score"
        if other not in given:
            columns.pop(other, None)
    elif "true_success" in columns and source.is_truth(table[columns["true_success"]]):
        columns.pop("score", None)
    elif "score" in columns or "true_success" in columns:
        column = columns.pop("score", None) or columns["true_success"]
        columns.pop("true_success", None)
        columns["true_success" if source.is_truth(table[column]) else "score"] = column


def _range(cells: pl.Series) -> tuple[int, int]:
    """Return whole numbers that hold the scores of a column, 0 and 1 where these do."""
    numbers = cells.cast(pl.String, strict=False).cast(pl.Float64, strict=False).drop_nulls()
    finite = numbers.filter(numbers.is_finite())
    if not len(finite):
        raise UsageError(
            f"column {cells.name!r} does not hold the scores of a study",
            expected="numbers",
            found=", ".join(map(str, cells.head(3).to_list())),
            remedy="say which column it is: --score COLUMN",
        )
    low, high = float(str(finite.min())), float(str(finite.max()))
    return min(0, floor(low)), max(1, ceil(high))


def _names_runs(table: pl.DataFrame, columns: dict[str, str]) -> bool:
    """Whether the column taken for the runs' names tells them apart: others call a repetition a run."""
    if "run_id" not in columns:
        return True
    key = [columns[name] for name in ("condition", "arm", "seed") if name in columns]
    places = table.group_by(columns["run_id"]).agg(pl.struct(key).n_unique().alias("places"))
    return bool((places["places"] == 1).all()) if key else True


def _words(table: pl.DataFrame, column: str, target: str) -> dict[str, str]:
    """Return the words of a column, each with the word that registers can have for it."""
    texts = table[column].drop_nulls().cast(pl.String).unique().sort().to_list()
    words = [re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") for text in texts]
    words = [
        word if word[:1].isalpha() else f"{target}_{word or number}"
        for number, word in enumerate(words, start=1)
    ]
    if len(texts) > MOST_WORDS or len(set(words)) < len(words) or (target == "arm" and len(texts) < _ARMS):
        raise UsageError(
            f"column {column!r} does not hold the {target}s of a study",
            expected=f"{_ARMS if target == 'arm' else 1} to {MOST_WORDS} words that can be told apart",
            found=", ".join(texts[:5]) + (", ..." if len(texts) > 5 else ""),  # noqa: PLR2004 - to be read
            remedy="say which column it is, as --arm COLUMN; or leave out --table, and name it in the "
            "mapping",
        )
    return dict(zip(texts, words, strict=True))


def _numbers(table: pl.DataFrame, columns: dict[str, str], target: str) -> tuple[int, ...]:
    cells = table[columns[target]].cast(pl.String, strict=False).str.replace(r"\.0+$", "")
    read = cells.cast(pl.Int64, strict=False)
    numbers = read.drop_nulls().unique().sort().to_list()
    if not numbers or (read.is_null() & cells.is_not_null()).any():
        raise UsageError(
            f"column {columns[target]!r} does not hold the {target}s of a study",
            expected="whole numbers",
            found=", ".join(map(str, table[columns[target]].head(3).to_list())),
        )
    return tuple(numbers)


_SEVERAL = 2


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


def _rules(outline: Outline) -> str:
    method, why = _interval(outline)
    arms, condition = outline.arms[:2], outline.conditions[0]
    several = len(outline.steps) >= _SEVERAL
    over_steps = 'over_steps = "auc"\n' if several else ""
    measured = "score" if outline.scores else "success"
    what = f"AUC of {measured} over the steps" if several else measured.capitalize()
    low, high = outline.scores or (0, 1)
    scores = (
        f'# What an episode can score.\n[scores]\nrange = ["{low}", "{high}"]\n\n' if outline.scores else ""
    )
    return _template("rules").format(
        name=outline.name,
        of_pilot=OF_PILOT if outline.is_of_log else "",
        arms=_list(outline.arms),
        regimes=_list(outline.regimes),
        pools=_list(outline.pools),
        matrix="\n".join(
            _template("matrix").format(condition=each, arms=_list(outline.arms), seeds=_list(outline.seeds))
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
        method=method,
        why=why,
        scores=scores,
        attributes=_attributes(outline),
        outcome='{ sum = "score", of = "episodes" }'
        if scores
        else '{ count = "successes", of = "episodes" }',
        unit="score/episodes" if scores else "fraction",
        low=low - high,
        high=high - low,
        threshold=f"{(high - low) / 20:g}",
    )


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
