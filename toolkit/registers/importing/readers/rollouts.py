"""Rollouts that trainers recorded: TRL's Parquet files, verl's JSON lines, groups of paired rollouts."""

from __future__ import annotations

import json
import pickletools
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import polars as pl

from toolkit.errors import DamagedError, IncompleteError
from toolkit.files import read_text
from toolkit.registers.importing.readers import common
from toolkit.registers.importing.readers.common import Reader, Run, files_below, flattened, reading
from toolkit.registers.importing.source import FILE, LARGEST_TABLE, ROW, Log, bounded, read_source
from toolkit.structs import replace

# TRL writes the completions of the batch that it generated last, each time that it logs: with `logging_steps`
# above 1 the batches between are in no file, and a batch that it trains on twice is in two. An evaluation
# takes the place of its step's batch; where it is smaller, the end of that batch comes before it in the file.

POOL = "pool"
TRAIN, EVAL = "train", "eval"
_USE = "what a step was for"
_STRATEGIES = ("eval_strategy", "evaluation_strategy")
ARGUMENTS = "training_args.bin"
STATE = "trainer_state.json"
NEEDED = ("step", "prompt", "completion")
_completions = partial(files_below, fits=common.named(r"completions_\d+\.parquet"))
_REWARD = re.compile(r"(?:eval_)?rewards/(.+)/mean")


def _read_trl(paths: list[Path]) -> Log:
    """Read the rollouts of runs.

    A row is a rollout: `step`, `task` (of its prompt), `prompt`, `schedule` (which rollout of its prompt at
    its step), `completion`, the reward functions' columns and `advantage` as TRL wrote them, `score` (their
    weighted sum, which TRL logs as reward), and `config.NAME` of the training arguments in which runs differ.
    Where a run evaluates, `pool` says which steps are evaluations: train, or eval.
    """
    files = [file for path in paths for file in _completions(path)]
    for path in paths:
        common.check_within(path, _completions(path))
    left_out: dict[str, None] = {}
    runs = [_run(folder, list(own), left_out) for folder, own in groupby(files, _folder)]
    evaluates = any(
        (run.table[_USE] == EVAL).any() or any(_does(run.settings, f"config.{name}") for name in _STRATEGIES)
        for run in runs
    )
    log = common.joined(TRL.name, runs, left_out)
    if not evaluates:
        return replace(log, table=log.table.drop(_USE))
    return _of_kinds(replace(log, table=common.set_apart(log.table, [POOL]).rename({_USE: POOL})))


def _does(settings: Mapping[str, object], name: str) -> bool:
    return isinstance(strategy := settings.get(name), str) and strategy != "no"


def _of_kinds(log: Log) -> Log:
    """Return a log whose pools have to be told apart, where it has several."""
    is_mixed = POOL in log.table.columns and log.table[POOL].n_unique() > 1
    return replace(log, kinds=POOL) if is_mixed else log


def _folder(file: Path) -> Path:
    """Return the folder of the run that wrote a file."""
    return file.parent.parent if file.parent.name == "completions" else file.parent


def _step_of(file: Path) -> int:
    return int(file.stem.rpartition("_")[2])


def _run(folder: Path, files: list[Path], left_out: dict[str, None]) -> Run:
    told = [file for file in (_newest(folder, ARGUMENTS), _newest(folder, STATE)) if file]
    common.check_within(folder, told)
    arguments = next((attributes(file) for file in told if file.name == ARGUMENTS), None)
    state = next((_state(file) for file in told if file.name == STATE), None)
    _check_evaluations_known(files, arguments or {}, state)
    nested: set[str] = set()
    evaluated = state.evaluated if state else {}
    table = common.numbered(pl.concat(_batches(files, nested, left_out, evaluated), how="diagonal_relaxed"))
    settings_left: set[str] = set()
    settings = {
        f"config.{name}": value for name, value in flattened(arguments or {}, settings_left, folder).items()
    }
    left_out |= dict.fromkeys(f"completions: {name}" for name in sorted(nested))
    left_out |= dict.fromkeys(f"{ARGUMENTS}: {name}" for name in sorted(settings_left))
    if state is None:
        left_out[f"which steps are evaluations, of {folder.name}: there is no {STATE} that says it"] = None
    else:
        left_out[f"{STATE}: the figures of whole steps"] = None
    return Run(folder, _scored(table, arguments, state.rewards if state else None), settings, (*files, *told))


def _check_evaluations_known(files: list[Path], arguments: dict[str, Any], state: _State | None) -> None:
    """Check that it is known of every step whether it is an evaluation, where there are some."""
    evaluates = bool(state and state.evaluated) or any(_does(arguments, name) for name in _STRATEGIES)
    told = state.last if state else -1
    untold = [file for file in files if _step_of(file) > told]
    if evaluates and untold:
        raise IncompleteError(
            "nothing says which of the last steps are evaluations, and the run has some",
            expected=f"a {STATE} of a later step",
            found="none" if state is None else f"one of step {told}",
            where=untold[0],
            remedy=f"copy the {STATE} of the run's last checkpoint, or remove the completions after it",
        )


def _batches(
    files: list[Path], nested: set[str], left_out: dict[str, None], evaluated: Mapping[int, int | None]
) -> list[pl.DataFrame]:
    """Return the rows of each file; one that has the batch of the file before again is left out."""
    batches: list[pl.DataFrame] = []
    rows, before = 0, None
    for file in files:
        batch = read_source(file, nested).drop(ROW)
        _check_columns(batch, NEEDED, "completions of a TRL trainer", file)
        rollouts = batch.drop("step")
        if before is not None and rollouts.equals(before):
            left_out[f"{file.name}: the rollouts of the file before, which are there again"] = None
            continue
        before = rollouts
        step = _step_of(file)
        if step in evaluated:
            left_out[f"{file.name}: no training but an evaluation, pool {EVAL!r}"] = None
            own = _last_of(batch["prompt"].to_list(), evaluated[step])
            if own < batch.height:
                left_out[f"{file.name}: {batch.height - own} rollouts of the training before it"] = None
            batch = batch.tail(own)
        use = EVAL if step in evaluated else TRAIN
        batches.append(batch.with_columns(pl.lit(use).alias(_USE)))
        rows += batch.height
        common.check_cells(rows, batch.width)
    return batches


def _check_columns(table: pl.DataFrame, needed: Sequence[str], what: str, file: Path) -> None:
    absent = [name for name in needed if name not in table.columns]
    if absent:
        raise DamagedError(
            f"the file has no {what}",
            expected=", ".join(needed),
            found=f"no {', no '.join(absent)}",
            where=file,
        )


def _newest(folder: Path, name: str) -> Path | None:
    """Return a file of the run's own folder, or of its last checkpoint."""
    steps = {
        int(path.parent.name.partition("-")[2]): path
        for path in folder.glob(f"checkpoint-*/{name}")
        if path.parent.name.partition("-")[2].isdecimal()
    }
    own = folder / name
    return own if own.is_file() else steps[max(steps)] if steps else None


def _last_of(prompts: list[str], most: int | None) -> int:
    """Return how many rollouts, counted from the last, are of no more prompts than an evaluation had."""
    met: set[str] = set()
    for count, prompt in enumerate(reversed(prompts)):
        met.add(prompt)
        if most is not None and len(met) > most:
            return count
    return len(prompts)


@dataclass(frozen=True)
class _State:
    """What a trainer says of its steps."""

    rewards: list[str]  # names of the reward functions
    evaluated: Mapping[
        int, int | None
    ]  # step of an evaluation → how many prompts it had, where that is known
    last: int  # the last step that it tells of


def _state(file: Path) -> _State:
    with reading(file, "what a trainer writes"):
        document = json.loads(read_text(file))
        history = document["log_history"]
        told = [_REWARD.fullmatch(name) for entry in history for name in entry]
        evaluations = [entry for entry in history if any(name.startswith("eval_") for name in entry)]
        evaluated = {int(entry["step"]): _prompts(entry) for entry in evaluations}
        last = max([int(document.get("global_step", 0)), *(int(entry.get("step", 0)) for entry in history)])
    return _State(list(dict.fromkeys(match[1] for match in told if match)), evaluated, last)


def _prompts(entry: dict[str, Any]) -> int | None:
    """Return how many prompts an evaluation had, by its speed."""
    if not {"eval_runtime", "eval_samples_per_second"} <= entry.keys():
        return None
    return round(entry["eval_runtime"] * entry["eval_samples_per_second"]) or None


def _scored(table: pl.DataFrame, arguments: dict[str, Any] | None, rewards: list[str] | None) -> pl.DataFrame:
    """Return rollouts with their weighted reward as `score`, where it is known which functions gave it."""
    columns = [
        name
        for name, kind in table.schema.items()
        if (name in rewards if rewards is not None else kind.is_float() and name != "advantage")
    ]
    weights = (arguments or {}).get("reward_weights") or [1.0] * len(columns)
    is_known = len(columns) == 1 or (rewards is not None and arguments is not None)
    if not columns or not is_known or len(weights) != len(columns):
        return table
    given = [pl.col(name) * weight for name, weight in zip(columns, weights, strict=True)]
    total = pl.when(~pl.all_horizontal(pl.col(name).is_null() for name in columns)).then(
        pl.sum_horizontal(given, ignore_nulls=True)
    )
    values = table.select(total.alias("score"))["score"]
    return common.set_apart(table, ["score"]).with_columns(values)


LARGEST = 2**20
"""Bytes of a pickle: a trainer's arguments have a hundredth."""
_OTHER = object()
"""Stands for whatever a pickle would import or make."""


def attributes(path: Path) -> dict[str, Any]:
    """Return the attributes of an object that `torch.save` wrote, such as `training_args.bin`."""
    remedy = "remove the file: without it the log is read without the run's settings"
    with reading(path, "what torch.save writes", remedy=remedy), zipfile.ZipFile(path) as archive:
        (member,) = [one for one in archive.infolist() if one.filename.split("/")[1:] == ["data.pkl"]]
        if member.file_size > LARGEST:
            raise ValueError(f"{member.file_size} bytes of settings, {LARGEST} at most")
        if member.flag_bits & common.ENCRYPTED_MEMBER:
            raise ValueError("the settings are encrypted")
        with archive.open(member) as opened:
            return _top(opened.read(LARGEST))


def _top(pickled: bytes) -> dict[str, Any]:
    """Return the attributes of the object that a pickle's instructions would leave."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    for code, argument, _ in pickletools.genops(pickled):
        if code.name == "MARK":
            marks.append(len(stack))
        elif code.name in _PUT:
            memo[len(memo) if argument is None else int(argument)] = stack[-1]
        elif code.name in _GET:
            stack.append(memo[int(argument or 0)])
        elif code.name not in {"PROTO", "FRAME", "STOP"}:
            taken = _taken([kind.name for kind in code.stack_before], stack, marks)
            if code.name in _MAKES:
                stack.append(_MAKES[code.name](taken))
            elif code.name in _LITERALS:
                stack.append(argument)
            else:
                stack.extend(_OTHER for _ in code.stack_after)
    if not isinstance(stack[-1], dict):
        raise ValueError("an object without attributes")  # noqa: TRY004 - of the file, not of a type
    return {key: value for key, value in stack[-1].items() if isinstance(key, str)}


def _taken(before: list[str], stack: list[Any], marks: list[int]) -> list[Any]:
    """Take from the stack what an instruction takes: so many objects, and those above the last mark."""
    above = 0
    if "mark" in before:
        above = len(stack) - marks.pop()
        before = [name for name in before if name not in {"mark", "stackslice"}]
    start = len(stack) - above - len(before)
    if start < 0 or above < 0:
        raise ValueError("an instruction without its objects")
    taken = stack[start:]
    del stack[start:]
    return taken


def _set(taken: list[Any]) -> Any:
    if isinstance(taken[0], dict):
        pairs = zip(taken[1::2], taken[2::2], strict=True)
        taken[0].update((key, value) for key, value in pairs if isinstance(key, str))
    return taken[0]


def _append(taken: list[Any]) -> Any:
    if isinstance(taken[0], list):
        taken[0].extend(taken[1:])
    return taken[0]


def _word(taken: list[Any]) -> Any:
    """Return the word of an enumeration's member, which is made of it alone."""
    told = taken[1]
    is_word = isinstance(told, list) and len(told) == 1 and isinstance(told[0], str)
    return told[0] if is_word else _OTHER


_PUT = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
_GET = {"GET", "BINGET", "LONG_BINGET"}
_LITERALS = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
}
_MAKES: dict[str, Callable[[list[Any]], Any]] = {
    **dict.fromkeys(("SETITEM", "SETITEMS"), _set),
    **dict.fromkeys(("APPEND", "APPENDS"), _append),
    **dict.fromkeys(("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "LIST", "EMPTY_TUPLE", "EMPTY_LIST"), list),
    "EMPTY_DICT": lambda _: {},
    "BUILD": lambda taken: taken[1],
    "REDUCE": _word,
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
}


TRL = Reader(
    "TRL rollouts",
    "output folders of a TRL trainer with log_completions, or a folder of them",
    _completions,
    _read_trl,
)


# verl dumps what `trainer.rollout_data_dir` and `trainer.validation_data_dir` name.

_UID = "uid"
_OF_DUMPS = {"input", "output", "score", "step"}
_is_dump = common.named(r"\d+\.jsonl")
_KIND = re.compile(r"train|rollout|val|eval|test|generation|dump", re.IGNORECASE)


def _dumps(path: Path) -> list[Path]:
    """Return the dumps of steps; none where the first is of something else."""
    files = files_below(path, _is_dump)
    is_verl = files and common.first_object(files[0]).keys() >= _OF_DUMPS
    return files if is_verl else []


def _read_verl(paths: list[Path]) -> Log:
    """Read the rollouts of runs.

    A row is a rollout: `step`, `task` (its `uid` where that names an item, else of its prompt), `prompt`
    (verl's `input`), `schedule` (which rollout of its task at its step), `output`, `gts`, `score`, and what
    the reward function said beside it. Where folders of a run are called after what is in them, such as
    `rollouts` and `validation`, `pool` says which.
    verl writes no configuration there: arms and seeds are sought in the names of the folders.
    """
    runs: list[Run] = []
    left_out: set[str] = set()
    for path in paths:
        files = _dumps(path)
        common.check_within(path, files)
        files.sort(key=lambda file: (file.parent, int(file.stem)))
        for folder, own in groupby(files, attrgetter("parent")):
            steps = list(own)
            table = _steps(steps, left_out)
            is_kind = _KIND.search(folder.name) is not None
            if is_kind:
                table = common.set_apart(table, [POOL]).with_columns(pl.lit(folder.name).alias(POOL))
            runs.append(Run(folder.parent if is_kind else folder, table, files=tuple(steps)))
    of_items = _of_items([run.table for run in runs])
    if not of_items and any(_UID in run.table.columns for run in runs):
        left_out.add(f"{_UID}, which names no item: it is another at every step, or absent")
    runs = [replace(run, table=common.numbered(run.table, _UID if of_items else None)) for run in runs]
    return _of_kinds(common.joined(VERL.name, runs, sorted(left_out)))


def _steps(files: list[Path], left_out: set[str]) -> pl.DataFrame:
    """Return the rollouts of a folder."""
    steps: list[pl.DataFrame] = []
    rows = 0
    for file in files:
        step = read_source(file, left_out).drop(ROW)
        _check_columns(step, sorted(_OF_DUMPS), "rollouts of verl", file)
        rows += step.height
        common.check_cells(rows, step.width)
        steps.append(common.set_apart(step, ["prompt"]).rename({"input": "prompt"}))
    return pl.concat(steps, how="diagonal_relaxed")


def _of_items(tables: list[pl.DataFrame]) -> bool:
    """Whether every rollout has a `uid` that names its item: verl's own are made anew for every batch."""
    if not all(_UID in table.columns and not table[_UID].null_count() for table in tables):
        return False
    places = pl.concat(
        [
            table.select(_UID, "prompt", "step").with_columns(table=number)
            for number, table in enumerate(tables)
        ],
        how="vertical_relaxed",
    ).unique()

    def recurs(name: str) -> bool:
        return places.select(name, "step", "table").unique()[name].is_duplicated().any()

    return recurs(_UID) or not recurs("prompt")


VERL = Reader(
    "verl rollouts",
    "folders that verl dumps rollouts in (STEP.jsonl), or a folder of them",
    _dumps,
    _read_verl,
)


# Groups that `toolkit.noise.trainers` recorded: JSON lines, a group each. A row is a rollout: its arm is the
# design, its schedule the number of its slot among the task's at its step. `zero_variance` and `spurious` are
# its group's: whoever maps one of them as the outcome decides on its rate.

_OF_SLOTS = {"schedule_seeds": "schedule_seed", "true_outcomes": "outcome", "observed_rewards": "observed"}
_OF_GROUPS = ("design", "regime", "seed", "step", "task", "repeat", "exposed", "zero_variance", "spurious")


def _is_record(file: Path) -> bool:
    return file.suffix == ".jsonl" and {*_OF_GROUPS, *_OF_SLOTS} <= common.first_object(file).keys()


_records = partial(files_below, fits=_is_record)


def _read_groups(paths: list[Path]) -> Log:
    """Read records; several processes of a run, and several runs, have one each."""
    files = [file for path in paths for file in _records(path)]
    bounded("bytes", sum(file.stat().st_size for file in files), LARGEST_TABLE, paths[0])
    parts = []
    for file in files:
        with reading(file, "a record of groups"), file.open("rb") as lines:
            parts.append(_rollouts([json.loads(line) for line in lines], file.stem))
    with reading(paths[0], "records of groups"):
        table = pl.concat(parts)
    places = ["arm", "regime", "seed", "step", "task", "schedule"]
    twice = table.filter(table.select(places).is_duplicated())
    if twice.height:
        raise DamagedError(
            "a group is there twice",
            found=", ".join(f"{name} {twice[name][0]}" for name in places[:-1]),
            where=", ".join(twice[FILE].unique().sort()),
            remedy="`toolkit pairing verify` says which line it is",
        )
    table = common.with_outcome(table, "outcome").drop("outcome")
    rewards = table["observed"]
    if rewards.is_in([0.0, 1.0]).all():
        table = table.with_columns(rewards.cast(pl.Boolean).alias("observed_reward")).drop("observed")
    return Log(GROUPS.name, table, of_run=("arm", "regime", FILE), files=tuple(files))


def _rollouts(groups: list[dict[str, object]], name: str) -> pl.DataFrame:
    """Return a row a slot of every group."""
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        "seed": pl.UInt64,
        "schedule_seeds": pl.List(pl.String),
        "true_outcomes": pl.List(pl.Float64),
        "observed_rewards": pl.List(pl.Float64),
    }
    told = [{key: group[key] for key in (*_OF_GROUPS, *_OF_SLOTS)} for group in groups]
    table = pl.DataFrame(told, infer_schema_length=None, schema_overrides=schema)
    size = pl.col("schedule_seeds").list.len().cast(pl.Int64)
    rollouts = (
        table.with_columns(schedule=pl.int_ranges(pl.col("repeat") * size, (pl.col("repeat") + 1) * size))
        .explode(*_OF_SLOTS, "schedule")
        .rename({**_OF_SLOTS, "design": "arm"})
        .drop("repeat")
        .with_columns(pl.lit(name).alias(FILE))
    )
    if sum(rollouts.null_count().row(0)):
        raise ValueError("a group has an empty value")
    return rollouts


GROUPS = Reader(
    "groups of paired rollouts",
    "records of toolkit.noise.trainers (.jsonl), or a folder of them",
    _records,
    _read_groups,
)
