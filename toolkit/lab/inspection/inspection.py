"""Which design a training has really run: paired, independent, or paired without anybody having said so.

The evidence, the strongest first:

1. Seeds of schedules, noise or environments that the log has of every rollout. All equal within every group:
   paired. All different: independent. Anything else: neither.
2. Without seeds, what rollouts of one group were answered that asked the same after the same calls and
   answers. Under one schedule they are always answered the same. Paired: they always were, and more often
   than answers shuffled between groups would have been. Independent: they were not, and no more often than
   that. Neither: more often than that, and not always.

A world that answers at random beyond its schedule, or tells the time, contradicts pairing by the second
evidence; that seeds are equal does not say that the world obeys them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from toolkit.errors import DamagedError, IncompleteError
from toolkit.lab.inspection.agreement import Agreement, agreement, asked
from toolkit.lab.inspection.calls import Call, calls_of_json, calls_of_text
from toolkit.registers.importing.source import FILE, Log

if TYPE_CHECKING:
    import polars as pl

    from toolkit.documents.world import RunDesign, RunInspectionDocument, SeedsDocument
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


@dataclass(frozen=True)
class Seeds:
    """The seeds of a column."""

    column: str  # its name
    equal: int  # groups whose rollouts have one seed
    different: int  # groups whose rollouts have a seed each
    mixed: int  # groups in which some rollouts share one
    unknown: int  # groups in which a rollout has none

    @property
    def design(self) -> RunDesign:
        """What they say."""
        if not self.equal + self.different + self.mixed:
            return "cannot_tell"
        if not self.different + self.mixed:
            return "paired"
        return "neither" if self.equal + self.mixed else "independent"

    def document(self) -> SeedsDocument:
        """Return it as JSON values."""
        return {
            "column": self.column,
            "equal": self.equal,
            "different": self.different,
            "mixed": self.mixed,
            "unknown": self.unknown,
            "design": self.design,
        }


@dataclass(frozen=True)
class RunInspection:
    """What is found of a run."""

    run: str  # its name
    groups: int  # of two rollouts or more
    rollouts: int  # in them
    declared: RunDesign | None  # design that the log or the asker says it has
    seeds: tuple[Seeds, ...]  # a column each
    answers: Agreement | None  # agreement of what groups were answered; None where no call is read

    @property
    def basis(self) -> Literal["seeds", "answers"]:
        """Which evidence decides."""
        return "seeds" if self.by_seeds != "cannot_tell" else "answers"

    @property
    def by_seeds(self) -> RunDesign:
        """What seeds say; `neither` where two columns say different things."""
        said = {column.design for column in self.seeds} - {"cannot_tell"}
        if not said:
            return "cannot_tell"
        return said.pop() if len(said) == 1 else "neither"

    @property
    def by_answers(self) -> RunDesign:
        """What answers say."""
        found = self.answers
        if found is None or found.p is None:
            return "cannot_tell"
        if found.p <= LEVEL:
            return "neither" if found.differing else "paired"
        return "independent" if found.differing and found.expected_differing >= TO_SEE else "cannot_tell"

    @property
    def design(self) -> RunDesign:
        """What the strongest evidence says."""
        return self.by_seeds if self.basis == "seeds" else self.by_answers

    @property
    def is_accidental(self) -> bool:
        """Whether it is paired and nobody has said so."""
        return self.design == "paired" and self.declared is None

    @property
    def contradicts(self) -> bool:
        """Whether it is not what it is declared to be."""
        return self.declared is not None and self.design not in {self.declared, "cannot_tell"}

    @property
    def remarks(self) -> list[str]:
        """What the reader of the design has to know."""
        found = []
        if self.basis == "seeds" and self.by_seeds == "paired" and self.answers and self.answers.differing:
            found.append(
                "the seeds are equal within groups, but the world does not obey them: "
                f"{self.answers.differing} of {self.answers.pairs} pairs that asked the same differ"
            )
        if self.basis == "seeds" and self.by_seeds == "independent" and self.by_answers == "paired":
            found.append("the seeds differ within groups, but answers never do: the world does not obey them")
        if self.design == "cannot_tell":
            found.append(self._lacking())
        return found

    def _lacking(self) -> str:
        if self.answers is None:
            return "no seed of a rollout and no answered call is in the log"
        if self.answers.p is None:
            return "no question that several groups asked had several answers: no noise is to be seen"
        return (
            f"too few repeated calls: {self.answers.expected_differing:.1f} pairs would differ by chance, "
            f"{TO_SEE} are needed"
        )

    def document(self) -> RunInspectionDocument:
        """Return it as JSON values."""
        return {
            "run": self.run,
            "design": self.design,
            "basis": self.basis,
            "declared": self.declared,
            "accidental": self.is_accidental,
            "contradicts": self.contradicts,
            "groups": self.groups,
            "rollouts": self.rollouts,
            "seeds": [column.document() for column in self.seeds],
            "answers": None if self.answers is None else self.answers.document(self.by_answers),
            "remarks": self.remarks,
        }


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
        raise IncompleteError(
            "the log has no group of several rollouts",
            expected="several rollouts of one prompt at one step",
            remedy="if each rollout's prompt is another, give the size of groups: --group-size G",
        )
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
        found.append(RunInspection(run, len(groups), rollouts, said, (counted,), None))
    return found


def overall(runs: Sequence[RunInspection]) -> RunDesign | Literal["by_run"]:
    """Return the design that all runs have in common, or `by_run`."""
    found = {run.design for run in runs}
    return found.pop() if len(found) == 1 else "by_run"


def _training(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rollouts that were trained on."""
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
        raise IncompleteError(
            "the log does not say which rollouts are of one group",
            expected="columns step and task or prompt, or group_id",
            found=", ".join(table.columns),
            remedy="name them so, or give the size of groups, if they are in order: --group-size G",
        )
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
        calls = [_calls(cell, texts) for cell in run[texts].to_list()]
        if any(calls):
            answers = agreement(asked(zip(numbers, run["_task"].to_list(), calls, strict=True)))
    said = declared or _declared(run)
    return RunInspection(name, len(set(numbers)), run.height, said, seeds, answers)


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
    return Seeds(column, counts["equal"], counts["different"], counts["mixed"], counts["unknown"])


def _several(known: int, size: int) -> str:
    return "different" if known == size else "mixed"


def _calls(cell: object, column: str) -> tuple[Call, ...]:
    if cell is None:
        return ()
    if column not in _CALLS:
        return calls_of_text(str(cell))
    try:
        return calls_of_json(str(cell))
    except (ValueError, RecursionError) as error:
        raise DamagedError(
            f"a cell of column {column!r} is no list of calls",
            expected='[{"tool", "arguments", "answer"}] as JSON',
            found=error,
        ) from None


def _declared(run: pl.DataFrame) -> RunDesign | None:
    """Return the design that a column of the log says, if it says one and the same for the whole run."""
    said: Mapping[str, set[Any]] = {name: set(run[name].to_list()) for name in _DESIGN if name in run.columns}
    for values in said.values():
        designs = {_DECLARED.get(str(value)) for value in values}
        if len(designs) == 1 and None not in designs:
            return designs.pop()
    return None
