"""Which design a training has really run: paired, independent, or paired without anybody having said so.

The evidence, the strongest first:

1. Seeds of schedules, noise or environments that the log has of every rollout. All equal within every group:
   paired. All different: independent. Anything else: neither.
2. Without seeds, what rollouts of one group were answered that asked the same after the same calls and
   answers. Under one schedule they are always answered the same. Paired: they always were, and more often
   than answers shuffled between groups would have been. Independent: they were not, and no more often than
   that. Neither: more often than that, and not always.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import comb
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from toolkit.canonical import canonical
from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.importing.source import FILE, Log
from toolkit.structs import Document, about

_TURNS = re.compile(r"<tool_call>(.*?)</tool_call>|<tool_response>(.*?)</tool_response>", re.DOTALL)
_TOOL, _ANSWER = ("tool", "name"), ("answer", "result", "fault")


class Call(NamedTuple):
    """An answered call."""

    request: str  # tool and arguments, as one text; calls that ask the same have the same
    answer: str  # what came back


def calls_of_text(text: str) -> tuple[Call, ...]:
    """Return the answered calls of a rollout's text, in order: each turn's answers are those of its calls."""
    waiting: list[str] = []
    found: list[Call] = []
    for turn in _TURNS.finditer(text):
        if turn[1] is not None:
            waiting.append(_request(turn[1]))
        elif waiting:
            found.append(Call(waiting.pop(0), turn[2].strip()))
    return tuple(found)


def _calls(documents: list[object]) -> Iterator[Call]:
    for document in documents:
        said = document if isinstance(document, dict) else {}
        tool = next((said[name] for name in _TOOL if name in said), None)
        answers = {name: said[name] for name in _ANSWER if name in said}
        if not isinstance(tool, str) or not answers:
            raise ValueError("a call without its tool or its answer")
        yield Call(canonical([tool, said.get("arguments", {})]), canonical(answers))


def _request(text: str) -> str:
    """Return a call as one text, whatever the order of its arguments and its spaces."""
    try:
        return canonical(json.loads(text))
    except (ValueError, RecursionError):
        return " ".join(text.split())


PERMUTATIONS = 1999
"""The least p is 1/2000, a twentieth of the level that decides."""
_SEED = 0
_CELLS = 4_000_000  # of a block of permutations

Question = tuple[str, tuple[Call, ...], str]
"""Task, the calls and answers so far, and what is asked then."""
Answers = Mapping[Question, Mapping[int, Sequence[str]]]
"""For each question, the answers that the rollouts of each group were given."""


RunDesign = Literal["paired", "independent", "neither", "cannot_tell"]


class Agreement(Document, frozen=True):
    """Pairs of rollouts of one group that were asked the same, at the same point of the same history."""

    pairs: Annotated[int, about("How many.")]
    agreeing: Annotated[int, about("Answered the same.")]
    informative: Annotated[
        int, about("Pairs at questions that several groups asked and that had several answers.")
    ]
    informative_agreeing: Annotated[int, about("Those of them that were answered the same.")]
    by_chance: Annotated[float, about("How many would agree were answers shuffled.")]
    p: Annotated[
        float | None, about("How often shuffled answers agree as much; null without informative pairs.")
    ]
    differing: Annotated[int, about("Answered differently, which one schedule never does.")]
    design: Annotated[RunDesign, about("What it says.")]

    @property
    def expected_differing(self) -> float:
        """How many informative pairs would differ by chance: what there is to see."""
        return self.informative - self.by_chance


def asked(rollouts: Iterable[tuple[int, str, Sequence[Call]]]) -> Answers:
    """Return what was asked and answered."""
    found: dict[Question, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for group, task, calls in rollouts:
        for at, call in enumerate(calls):
            found[task, tuple(calls[:at]), call.request][group].append(call.answer)
    return found


def agreement(questions: Answers) -> Agreement:
    """Count agreeing pairs within groups, and compare them with answers shuffled between all who asked."""
    pairs = agreeing = informative = informative_agreeing = 0
    by_chance = 0.0
    shuffled = np.zeros(PERMUTATIONS)
    generator = np.random.default_rng(_SEED)
    for groups in questions.values():
        sizes = [len(answers) for answers in groups.values()]
        given = [answer for own in groups.values() for answer in own]
        _, numbers, counts = np.unique(given, return_inverse=True, return_counts=True)
        codes, answers = numbers.astype(np.int32), counts.tolist()
        inside = sum(comb(size, 2) for size in sizes)
        alike = int(_alike(codes[None], sizes, answers)[0])
        pairs, agreeing = pairs + inside, agreeing + alike
        if inside and len(sizes) > 1 and len(answers) > 1:
            informative, informative_agreeing = informative + inside, informative_agreeing + alike
            by_chance += inside * sum(comb(count, 2) for count in answers) / comb(len(codes), 2)
            shuffled += _shuffled(codes, sizes, answers, generator)
    as_much = int((shuffled >= informative_agreeing).sum())
    p = (1 + as_much) / (1 + PERMUTATIONS) if informative else None
    differing = pairs - agreeing
    design = _of_answers(p, differing, informative - by_chance)
    return Agreement(pairs, agreeing, informative, informative_agreeing, by_chance, p, differing, design)


def _of_answers(p: float | None, differing: int, expected_differing: float) -> RunDesign:
    if p is None:
        return "cannot_tell"
    if p <= LEVEL:
        return "neither" if differing else "paired"
    return "independent" if differing and expected_differing >= TO_SEE else "cannot_tell"


def _shuffled(
    codes: npt.NDArray[np.int32], sizes: list[int], counts: list[int], generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    block = max(1, _CELLS // len(codes))
    bounds = [*range(0, PERMUTATIONS, block), PERMUTATIONS]
    parts = [
        _alike(generator.permuted(np.tile(codes, (end - start, 1)), axis=1), sizes, counts)
        for start, end in pairwise(bounds)
    ]
    return np.concatenate(parts)


def _alike(codes: npt.NDArray[np.int32], sizes: list[int], counts: list[int]) -> npt.NDArray[np.int64]:
    starts = np.cumsum([0, *sizes[:-1]])
    total = np.zeros(len(codes), dtype=np.int64)
    for answer, count in enumerate(counts):
        if count > 1:
            inside = np.add.reduceat(codes == answer, starts, axis=1, dtype=np.int64)
            total += (inside * (inside - 1) // 2).sum(axis=1)
    return total


if TYPE_CHECKING:
    import polars as pl

    from toolkit.registers.study import Study


LEVEL = 0.01
"""Of the test that finds answers of one group agreeing more than by chance."""
TO_SEE = 10
"""Pairs that have to be expected to differ by chance, before as much as chance is called independent."""

SEEDS = re.compile(
    r"(?:own\.)?(?:schedule|noise|fault|env|environment|world|reset|episode)s?[_.\- ]?seeds?", re.IGNORECASE
)
"""Columns that are a rollout's seed; a column `seed` is one if it is not the same in the whole run."""
_PLAIN = {"seed", "own.seed"}
_GROUP = ("group_id", "group", "uid")
_TEXTS = ("completion", "output")
_CALLS = ("calls", "tool_calls")
_DECLARED: dict[str, RunDesign] = {
    "paired": "paired",
    "blocking_paired": "paired",
    "independent": "independent",
    "blocking": "independent",
    "clean": "independent",
}
"""By the arms of the paper; without noise schedules do not matter, and are independent."""
_EVALUATION = re.compile(r"val|eval|test", re.IGNORECASE)
_DESIGN = ("design", "own.design", "config.design", "arm")


class Seeds(Document, frozen=True):
    """The seeds of a column."""

    column: Annotated[str, about("Its name.")]
    equal: Annotated[int, about("Groups whose rollouts have one seed.")]
    different: Annotated[int, about("Groups whose rollouts have a seed each.")]
    mixed: Annotated[int, about("Groups in which some rollouts share one.")]
    unknown: Annotated[int, about("Groups in which a rollout has none.")]
    design: Annotated[RunDesign, about("What they say.")]


class RunInspection(Document, frozen=True):
    """What is found of a run."""

    run: Annotated[str, about("Name of the run.")]
    design: Annotated[RunDesign, about("What the strongest evidence says.")]
    basis: Annotated[Literal["seeds", "answers"], about("Which evidence that is.")]
    declared: Annotated[RunDesign | None, about("What it is declared to be.")]
    accidental: Annotated[bool, about("Paired, and nobody has said so.")]
    contradicts: Annotated[bool, about("Not what it is declared to be.")]
    groups: Annotated[int, about("Of two rollouts or more.")]
    rollouts: Annotated[int, about("In them.")]
    seeds: tuple[Seeds, ...]
    answers: Annotated[Agreement | None, about("Null where no call is read.")]
    remarks: Annotated[list[str], about("What a reader of the design has to know.")]


class InspectionDocument(Document, frozen=True):
    """Which design training has really run."""

    log: Annotated[str, about("What was inspected.")]
    format: Annotated[str, about("What wrote it, as it was recognized.")]
    design: Annotated[
        Literal["paired", "independent", "neither", "cannot_tell", "by_run"], about("`by_run`: runs differ.")
    ]
    runs: list[RunInspection]


def _judged(
    run: str,
    groups: int,
    rollouts: int,
    *,
    declared: RunDesign | None,
    seeds: tuple[Seeds, ...],
    answers: Agreement | None,
) -> RunInspection:
    """Return what is found of a run, by its strongest evidence; columns that disagree say `neither`."""
    said = {column.design for column in seeds} - {"cannot_tell"}
    by_seeds: RunDesign = "neither" if len(said) > 1 else next(iter(said), "cannot_tell")
    by_answers: RunDesign = "cannot_tell" if answers is None else answers.design
    design = by_answers if by_seeds == "cannot_tell" else by_seeds
    remarks = []
    if by_seeds == "paired" and answers and answers.differing:
        remarks.append(
            "the seeds are equal within groups, but the world does not obey them: "
            f"{answers.differing} of {answers.pairs} pairs that asked the same differ"
        )
    if by_seeds == "independent" and by_answers == "paired":
        remarks.append("the seeds differ within groups, but answers never do: the world does not obey them")
    if design == "cannot_tell":
        remarks.append(_why_undecided(answers))
    return RunInspection(
        run=run,
        design=design,
        basis="answers" if by_seeds == "cannot_tell" else "seeds",
        declared=declared,
        accidental=design == "paired" and declared is None,
        contradicts=declared is not None and design not in {declared, "cannot_tell"},
        groups=groups,
        rollouts=rollouts,
        seeds=seeds,
        answers=answers,
        remarks=remarks,
    )


def _why_undecided(answers: Agreement | None) -> str:
    if answers is None:
        return "no seed of a rollout and no answered call is in the log"
    if answers.p is None:
        return "no question that several groups asked had several answers: no noise is to be seen"
    return (
        f"too few repeated calls: {answers.expected_differing:.1f} pairs would differ by chance, "
        f"{TO_SEE} are needed"
    )


def inspect_log(
    log: Log,
    *,
    declared: RunDesign | None = None,
    group_size: int | None = None,
    seed_column: str | None = None,
) -> list[RunInspection]:
    """Inspect the runs of a log, in order.

    A group is the rollouts of one task at one step of one run, or what a column `group_id`, `group` or `uid`
    says. Where every task has a multiple of the least number of rollouts, a step that meets a task twice has
    two groups of it. With a group size, groups are that many rows of a step after one another.
    """
    table = _training(log.table)
    grouped = _numbered_groups(table, group_size)
    columns = _seed_columns(table, seed_column)
    texts = next((name for name in (*_CALLS, *_TEXTS) if name in table.columns), None)
    if not columns and texts is None:
        raise IncompleteError(
            "the log holds neither seeds of its rollouts nor what they were answered",
            expected="a column such as schedule_seed or env_seed, or the rollouts' texts with their calls",
            found=", ".join(table.columns),
            remedy="log it from a reward function (TRL: log_extra), or name the column with --seed-column",
        )
    found = [_inspected(str(name), run, columns, texts, declared) for name, run in _runs(grouped)]
    if not any(run.groups for run in found):
        problem = "the log has no group of several rollouts"
        remedy = "if each rollout's prompt is another, give the size of groups: --group-size G"
        raise IncompleteError(problem, expected="several rollouts of one prompt at one step", remedy=remedy)
    return found


def inspect_study(study: Study, declared: RunDesign | None = None) -> list[RunInspection]:
    """Inspect the runs of a study's registers, by the schedule seeds of their groups."""
    if not study.has("groups"):
        raise IncompleteError("the study has no table of groups", expected="groups", where=study.folder)
    arms = {row["run_id"]: row["arm"] for row in study.rows("runs")}
    rows = sorted(study.rows("groups"), key=lambda row: str(row["run_id"]))
    found = []
    for run, every in groupby(rows, key=lambda row: str(row["run_id"])):
        own = list(every)
        # Blocking plays a clean group beside each noisy one; without noise schedules do not matter.
        noisy = [row for row in own if row["regime"] != "clean"]
        groups = [row["schedule_seeds"] for row in noisy or own]
        counted = _counted("schedule_seeds", [group for group in groups if len(group) > 1])
        rollouts = sum(map(len, groups))
        said = declared or _DECLARED.get(arms[run])
        found.append(_judged(run, len(groups), rollouts, declared=said, seeds=(counted,), answers=None))
    return found


def overall(runs: Sequence[RunInspection]) -> RunDesign | Literal["by_run"]:
    """Return the design that all runs have in common, or `by_run`."""
    found = {run.design for run in runs}
    return found.pop() if len(found) == 1 else "by_run"


def _training(table: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    if "pool" not in table.columns:
        return table
    pools = [name for name in table["pool"].unique().to_list() if not _EVALUATION.match(str(name))]
    return table.filter(pl.col("pool").is_in(pools))


def _numbered_groups(table: pl.DataFrame, size: int | None) -> pl.DataFrame:
    """Return a table with the number of each row's group in `_group`, and its task in `_task`."""
    import polars as pl

    name = next((name for name in _GROUP if name in table.columns), None)
    run = [FILE] if FILE in table.columns else []
    step = ["step"] if "step" in table.columns else []
    task = next((column for column in ("task", "prompt") if column in table.columns), None)
    if not (size or name or (task and step)):
        problem = "the log does not say which rollouts are of one group"
        expected = "columns step and task or prompt, or group_id"
        remedy = "name them so, or give the size of groups, if they are in order: --group-size G"
        raise IncompleteError(problem, expected=expected, found=", ".join(table.columns), remedy=remedy)
    table = table.with_columns(_task=pl.col(task).cast(pl.String) if task else pl.lit(""))
    if size:
        place = pl.int_range(pl.len()).over([*run, *step]) if run + step else pl.int_range(pl.len())
        key = [*run, *step, (place // size).alias("_place")]
    elif name:
        key = [*run, *step, name]
    else:
        of_task = [*run, *step, "_task"]
        counts = table.group_by([*of_task]).len()["len"]
        least = min(counts.to_list(), default=1)
        splits = least > 1 and bool((counts % least == 0).all())
        place = pl.int_range(pl.len()).over(of_task) // (least if splits else table.height)
        key = [*of_task, place.alias("_place")]
    return table.with_columns(_group=pl.struct(key).rank("dense"))


def _seed_columns(table: pl.DataFrame, asked_for: str | None) -> list[str]:
    if asked_for is not None:
        if asked_for not in table.columns:
            raise IncompleteError(
                "the log has no such column", expected=asked_for, found=", ".join(table.columns)
            )
        return [asked_for]
    return [name for name in table.columns if SEEDS.fullmatch(name) or name in _PLAIN]


def _runs(table: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    if FILE not in table.columns:
        yield "run", table
        return
    for (name,), run in table.group_by([FILE], maintain_order=True):
        yield str(name), run


def _inspected(
    name: str, run: pl.DataFrame, columns: list[str], texts: str | None, declared: RunDesign | None
) -> RunInspection:
    import polars as pl

    run = run.filter(pl.len().over("_group") > 1)
    numbers = run["_group"].to_list()
    seeds = tuple(
        _counted(column, _grouped(numbers, run[column].to_list()))
        for column in columns
        # A column of another run is empty here; a seed that all rollouts share is the run's own.
        if run[column].count() and (column not in _PLAIN or run[column].n_unique() > 1)
    )
    answers = None
    if texts is not None:
        calls = [_calls_in(cell, texts) for cell in run[texts].to_list()]
        if any(calls):
            answers = agreement(asked(zip(numbers, run["_task"].to_list(), calls, strict=True)))
    said = declared or _declared(run)
    return _judged(name, len(set(numbers)), run.height, declared=said, seeds=seeds, answers=answers)


def _grouped(numbers: list[int], cells: list[Any]) -> list[list[Any]]:
    groups: dict[int, list[Any]] = {}
    for number, cell in zip(numbers, cells, strict=True):
        groups.setdefault(number, []).append(cell)
    return list(groups.values())


def _counted(column: str, groups: Sequence[Sequence[Any]]) -> Seeds:
    counts: Counter[str] = Counter()
    for group in groups:
        known = len(set(group))
        counts["unknown" if None in group else "equal" if known == 1 else _several(known, len(group))] += 1
    equal, different, mixed = counts["equal"], counts["different"], counts["mixed"]
    return Seeds(column, equal, different, mixed, counts["unknown"], _of_seeds(equal, different, mixed))


def _of_seeds(equal: int, different: int, mixed: int) -> RunDesign:
    if not different + mixed:
        return "paired" if equal else "cannot_tell"
    return "neither" if equal + mixed else "independent"


def _several(known: int, size: int) -> str:
    return "different" if known == size else "mixed"


def _calls_in(cell: object, column: str) -> tuple[Call, ...]:
    if cell is None:
        return ()
    if column not in _CALLS:
        return calls_of_text(str(cell))
    try:
        document = json.loads(str(cell))
        if not isinstance(document, list):
            raise ValueError("no list")  # noqa: TRY004, TRY301 - of the cell, not of a type
        return tuple(_calls(document))
    except (ValueError, RecursionError) as error:
        problem = f"a cell of column {column!r} is no list of calls"
        expected = '[{"tool", "arguments", "answer"}] as JSON'
        raise DamagedError(problem, expected=expected, found=error) from None


def _declared(run: pl.DataFrame) -> RunDesign | None:
    said: Mapping[str, set[Any]] = {name: set(run[name].to_list()) for name in _DESIGN if name in run.columns}
    for values in said.values():
        designs = {_DECLARED.get(str(value)) for value in values}
        if len(designs) == 1 and None not in designs:
            return designs.pop()
    return None
