"""Which runs decide: the registered matrix, and what a run must be to count."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from toolkit.decisions.endpoints import SCALINGS, Endpoint
from toolkit.decisions.keys import OPTIONAL, SPANS, Key, Value, keys
from toolkit.decisions.section import Section, exact_number
from toolkit.decisions.terms import OF_TOOLKIT, Terms
from toolkit.decisions.values import Missing, exact
from toolkit.errors import DamagedError, RuleError
from toolkit.registers.columns import BATTERIES, REGIMES, ROLES, Type
from toolkit.registers.row_types import RunRow
from toolkit.registers.schema import RUNS

Row = Mapping[str, Any]
Fixed = str | Fraction

FIXED = keys(
    *(
        Key(column.name, Value.NUMBER if column.type.is_number else Value.SCALAR, column.meaning, OPTIONAL)
        for column in RUNS.columns
        if column.type is Type.STRING or column.type.is_number
    )
)
"""Columns of `runs` that the matrix can fix."""
CELL = keys(
    Key("tier", Value.WHOLE, "order in which the budget is spent"),
    Key("condition", Value.TEXT, "what its runs work under, by name"),
    Key("noise", Value.TEXT, "what they train under, in words"),
    Key("arms", Value.TEXTS, "their arms: words of `[words]`, or the toolkit's"),
    Key("seeds", Value.WHOLES, "their seeds; a run for each arm and seed"),
    Key("scale_rewards", Value.TEXT, "how rewards are scaled, if the study does so", OPTIONAL, SCALINGS),
    Key("fixed", FIXED, "columns of `runs`, and what a run must have there to count", OPTIONAL),
    Key("for", Value.TEXTS, "the rules and curves that its runs are for"),
    Key("regime", Value.TEXT, "noise of training, for runs that are played here", OPTIONAL, REGIMES),
    Key("at_noise", Value.TEXT, "noise of periodic evaluation; else that of `regime`", OPTIONAL, REGIMES),
    Key("battery", Value.TEXT, "which evaluation sets its runs are played on", BATTERIES[0], BATTERIES),
    Key("role", Value.TEXT, "role of its runs; the arm says it where left out", OPTIONAL, ROLES),
    Key("settings", Value.TABLE, "how its runs are played, where not as usual", OPTIONAL),
    SPANS,
)


@dataclass(frozen=True)
class Cell:
    """One line of the registered run matrix: the keys of `CELL`.

    Args:
        fixed: what `[training]` fixes for every run included.
        serves: the rules and curves that the runs are for.
        settings: who plays the runs knows the names.
    """

    tier: int
    condition: str
    noise: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    scale_rewards: str
    fixed: dict[str, Fixed]
    serves: tuple[str, ...]
    regime: str = ""
    at_noise: str = ""
    battery: str = BATTERIES[0]
    role: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    spans: tuple[str, ...] = ()

    def holds(self, condition: str, scale_rewards: str, arm: str, seed: int) -> bool:
        """Whether a run belongs to the cell."""
        is_group = (self.condition, self.scale_rewards) == (condition, scale_rewards)
        return is_group and arm in self.arms and seed in self.seeds


@dataclass(frozen=True)
class Plan:
    """The registered runs, and the roles of those that enter decisions.

    Args:
        roles: of the runs that enter decisions.
        cells: the lines of the matrix.
        recipe: settings that language models are trained with, as the trainer reads them; none for runs of
            another policy, and for those that are trained elsewhere.
    """

    roles: tuple[str, ...]
    cells: tuple[Cell, ...]
    recipe: Mapping[str, Any] = field(default_factory=dict)

    def cell(self, condition: str, scale_rewards: str, arm: str, seed: int) -> Cell | None:
        """Return the cell that a run belongs to, or None where it was not registered."""
        return next((cell for cell in self.cells if cell.holds(condition, scale_rewards, arm, seed)), None)

    def begun(self, cell: Cell, runs: Sequence[RunRow]) -> bool:
        """Whether any deciding run of a cell exists."""
        return any(run["role"] in self.roles and cell.holds(*place_of(run)) for run in runs)

    def deciding_runs(
        self, endpoint: Endpoint, runs: Sequence[RunRow]
    ) -> dict[tuple[str, int], str | Missing]:
        """Find the one deciding run of every arm and seed that an endpoint reads.

        A cell of which no run exists was not run; a single missing run is a gap in the evidence.
        """
        of_condition = [run for run in runs if run["condition"] == endpoint.condition]
        return {
            (arm, seed): self._deciding_run(endpoint, arm, seed, of_condition)
            for arm in endpoint.arms
            for seed in endpoint.seeds
        }

    def _deciding_run(self, endpoint: Endpoint, arm: str, seed: int, runs: Sequence[RunRow]) -> str | Missing:
        key = (endpoint.condition, endpoint.scale_rewards, arm, seed)
        matching = [run for run in runs if run["role"] in self.roles and place_of(run) == key]
        name = described(endpoint, arm, seed)
        if len(matching) > 1:
            raise DamagedError(
                "two deciding runs stand in one place of the matrix",
                expected=f"one run for {name}",
                found=", ".join(run["run_id"] for run in matching),
                where="runs",
            )
        cell = self.cell(*key)
        if not matching:
            begun = cell is not None and self.begun(cell, runs)
            return Missing(not_run=not begun, reasons=(f"{name} was not run",))
        return _counts(matching[0], cell.fixed if cell else {})


def place_of(run: RunRow) -> tuple[str, str, str, int]:
    """Return a run's condition, reward scaling, arm and seed; no scaling where its study recorded none."""
    return run["condition"], run.get("scale_rewards") or "", run["arm"], run["seed"]


def described(endpoint: Endpoint, arm: str, seed: int) -> str:
    """Return the place of a run in words."""
    how = "" if endpoint.scale_rewards in {"", "group"} else f" with scale_rewards {endpoint.scale_rewards}"
    return f"{endpoint.condition} {arm} seed {seed}{how}"


def read_plan(
    roles: tuple[str, ...],
    training: dict[str, Any],
    cells: list[Any],
    terms: Terms = OF_TOOLKIT,
    recipe: Mapping[str, Any] | None = None,
) -> Plan:
    """Read the registered matrix."""
    if not roles or not set(roles) <= set(ROLES):
        raise RuleError(
            "deciding roles are roles of runs, at least one",
            expected=", ".join(ROLES),
            found=", ".join(roles) or "none",
            where="deciding_roles",
        )
    plan = Plan(roles, tuple(_cell(content, training, terms) for content in cells), recipe or {})
    places = Counter(
        (c.condition, c.scale_rewards, arm, s) for c in plan.cells for arm in c.arms for s in c.seeds
    )
    twice = {key for key, number in places.items() if number > 1}
    if twice:
        raise RuleError("the matrix has a run twice", found=min(twice), where="matrix")
    return plan


def _counts(run: RunRow, fixed: Mapping[str, Fixed]) -> str | Missing:
    """Return a run's name if it counts: its evidence complete, its fixed values the registered ones."""
    name = str(run["run_id"])
    if run["status"] != "COMPLETE":
        return Missing(not_run=False, reasons=(f"{name} is not complete",))
    wrong = [
        f"{name} has {column} {run.get(column)}, and {expected} is registered"
        for column, expected in fixed.items()
        if not _is_fixed(run.get(column), expected)
    ]
    return Missing(not_run=False, reasons=tuple(wrong)) if wrong else name


def _is_fixed(value: Any, expected: Fixed) -> bool:
    if isinstance(expected, Fraction) and value is not None:
        return exact(value) == expected
    return bool(value == expected)


def _cell(content: object, training: dict[str, Any], terms: Terms) -> Cell:
    section = Section(content, "matrix", CELL)
    cell = Cell(
        tier=section.whole("tier"),
        condition=section.text("condition"),
        noise=section.text("noise"),
        arms=section.texts("arms"),
        seeds=section.wholes("seeds"),
        scale_rewards=section.text("scale_rewards"),
        fixed=_fixed({**training, **section.table("fixed")}),
        serves=section.texts("for"),
        regime=section.text("regime"),
        at_noise=section.text("at_noise"),
        battery=section.text("battery"),
        role=section.text("role"),
        settings=section.table("settings"),
        spans=section.texts("spans"),
    )
    section.done()
    if cell.at_noise and not cell.regime:
        problem = "a line of the matrix names a regime of evaluation, and none of training"
        raise section.wrong(problem, expected="regime", found=f"at_noise = {cell.at_noise}")
    if cell.regime and not cell.scale_rewards:
        raise section.wrong("runs that are played here say how rewards are scaled", expected="scale_rewards")
    unknown = [arm for arm in cell.arms if arm not in terms.arms]
    if unknown:
        raise RuleError(
            "the matrix has an unknown arm",
            expected=", ".join(terms.arms),
            found=", ".join(unknown),
            remedy="a study with arms of its own declares them: [words] arm = [...]",
        )
    return cell


def _fixed(content: dict[str, Any]) -> dict[str, Fixed]:
    fixed: dict[str, Fixed] = {}
    for name, value in content.items():
        column = RUNS.column(name)
        if column is None:
            problem = f"register 'runs' has no column {name!r}"
            raise RuleError(problem, expected=", ".join(RUNS.column_names), where="matrix")
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise RuleError(f"{name!r} has the wrong type", expected="str", found=repr(value), where="matrix")
        if column.type is Type.STRING:
            fixed[name] = str(value)
        elif column.type.is_number:
            fixed[name] = exact_number(str(value), f"matrix.fixed.{name}")
        else:
            problem = f"column {name!r} of 'runs' cannot be fixed"
            raise RuleError(problem, found=column.type.value, where="matrix")
    return fixed
