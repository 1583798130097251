"""A decision: the verdict on one rule in one study, with every number it rests on."""

from dataclasses import asdict, dataclass
from fractions import Fraction
from html import escape
from typing import Any

from toolkit.decisions.interval import Interval
from toolkit.decisions.pvalues import PValue
from toolkit.decisions.values import Missing, Series, Value, exact_text, rounded
from toolkit.prereg.standing import UNVERIFIED, Standing
from toolkit.registers.study import Origin


@dataclass(frozen=True)
class CriterionResult:
    """One criterion.

    Args:
        id, text, test, reading: as written in the rules.
        value: the number tested, where the test is about one.
        holds: whether it holds.
        basis: what it rests on: `counts`, `figures`, `figures as published`, `interval as published`,
            `exact test` and what that is of, `rules`.
        against: what the value is compared with, where that is measured, too, and no number as written.
        cautions: quotients in the test whose denominator is not told from zero, in words.
        procedures: which tests its comparisons with margins are, and at what level, in words.
    """

    id: str
    text: str
    test: str
    reading: str | None
    value: Value | None
    holds: bool | Missing
    basis: tuple[str, ...]
    against: Value | None = None
    cautions: tuple[str, ...] = ()
    procedures: tuple[str, ...] = ()

    @property
    def marked(self) -> str:
        """The criterion in a line of HTML, with a mark that says whether it holds."""
        mark = "?" if isinstance(self.holds, Missing) else "✓" if self.holds else "✗"
        return f"{mark} {escape(self.text)} <code>{escape(self.test)}</code>"

    def as_dict(self) -> dict[str, Any]:
        """Return the criterion as it is printed with `--json`."""
        document: dict[str, Any] = {"id": self.id, "text": self.text, "test": self.test}
        if self.reading:
            document["reading"] = self.reading
        document["value"], document["decimal"] = printed(self.value)
        if self.against is not None:
            document["against"] = printed(self.against)[1]
        document["basis"] = list(self.basis)
        document["holds"] = None if isinstance(self.holds, Missing) else self.holds
        if isinstance(self.holds, Missing):
            document["missing"] = list(self.holds.reasons)
        if self.cautions:
            document["cautions"] = list(self.cautions)
        if self.procedures:
            document["procedures"] = list(self.procedures)
        return document


@dataclass(frozen=True)
class Estimate:
    """The value of an endpoint, its mean and its members where it is a series; or that of a statistic."""

    endpoint: str
    title: str
    unit: str
    mean: Fraction | Missing
    members: Series[Fraction] | None

    def as_dict(self) -> dict[str, Any]:
        """Return the estimate as it is printed with `--json`."""
        document = {"endpoint": self.endpoint, "mean": printed(self.mean)[1]}
        if self.members is not None:
            document[f"by_{self.members.unit}"] = printed(self.members)[1]
        return document

    @property
    def in_words(self) -> str:
        """Its mean, and its members where it has some: what is missing is said to be."""
        of = "mean " if self.members else ""
        text = f"{self.title}: {of}{_in_words(self.mean)} {self.unit}".rstrip()
        if self.members is None:
            return text
        return (
            text
            + "; "
            + ", ".join(
                f"{self.members.unit} {name} {_in_words(value)}" for name, value in self.members.items
            )
        )


@dataclass(frozen=True)
class AmendmentRef:
    """What an amendment did to a rule: it `replaces` it, `restates` it on what it changed, or `adds` it."""

    id: str
    relation: str
    sha256: str


@dataclass(frozen=True)
class Exploratory:
    """What a rule would say as an amendment has it that was made after the runs, and binds nothing."""

    amendment: str
    sha256: str
    verdict: str
    evidence: str


@dataclass(frozen=True)
class Bounds:
    """What the episodes without an outcome could turn.

    Args:
        counts_as: what they count as, as registered.
        all_fail, all_succeed: the verdict with all of them failures, and with all of them successes.
    """

    counts_as: str
    all_fail: str
    all_succeed: str

    @property
    def in_words(self) -> str:
        """The two verdicts, in words."""
        fail, succeed = (verdict.replace("_", " ") for verdict in (self.all_fail, self.all_succeed))
        return f"with every episode without an outcome a failure {fail}, with every one a success {succeed}"

    @property
    def verdict(self) -> str:
        """The verdict that stands: none where the bounds are registered to agree, and do not."""
        agree = self.counts_as != "bounds" or self.all_fail == self.all_succeed
        return self.all_fail if agree else "not_evaluable"


@dataclass(frozen=True)
class RegisterRef:
    """A table that was read, with the hashes that were computed when it was.

    Args:
        config: the table.
        sha256: its logical row hash; None where only some of its files were read.
        files: the SHA-256 of each file that was read, by its path.
    """

    config: str
    sha256: str | None
    files: dict[str, str]


@dataclass(frozen=True)
class Decision:
    """The verdict on one rule in one study.

    Args:
        rule, kind, title, text: the rule.
        study: the study.
        verdict: `pass`, `miss`; `met`, `partially_met`, `missed`, `superseded`; `not_evaluable`, `not_run`;
            or a gate's outcome.
        holds: whether everything that the binding reading asks for holds.
        evidence: what the interval shows beside the verdict.
        criteria: every criterion of every reading.
        estimate: the rule's estimate, where it names an endpoint or a statistic.
        interval: its registered interval, or what is missing for it.
        threshold: the value beside zero that the interval is compared with.
        readings: verdict by reading, where there are several; `binding` is the one that decides.
        original_verdict: of a superseded prediction, and why it is superseded.
        registration: name and digest of the frozen files.
        amendment: what the last amendment that names the rule did to it.
        rests_on: amendments of the rules that it rests on.
        secondary: endpoints shown beside the rule that decide nothing.
        registers: every table read.
        endpoints: the endpoints that its tests and its estimate read.
        statistics: the statistics that they name, and those that these are made of.
        tests: the tests of significance that they name.
        close_calls: what other random numbers in the bootstrap could turn, in words.
        added_by: the amendment that added the rule; None where it was frozen.
        origin: the commit of the Hub that the study was read from; None for a local study.
        standing: what the registration stands on.
        exploratory: what the rule would say as changed after the runs.
        is_exploratory: whether the rule itself was added after the runs: its verdict binds nothing.
        bounds: what the episodes without an outcome could turn; None where there are none.
    """

    rule: str
    kind: str
    title: str
    text: str
    study: str
    verdict: str
    holds: bool | Missing
    evidence: str
    criteria: tuple[CriterionResult, ...]
    estimate: Estimate | None
    interval: Interval | Missing | None
    threshold: Fraction | None
    readings: dict[str, str]
    binding: str
    original_verdict: str | None
    superseded: str
    registration: tuple[str, str]
    amendment: AmendmentRef | None
    rests_on: tuple[AmendmentRef, ...]
    secondary: tuple[Estimate, ...]
    registers: tuple[RegisterRef, ...]
    endpoints: tuple[str, ...]
    close_calls: tuple[str, ...] = ()
    added_by: AmendmentRef | None = None
    origin: Origin | None = None
    standing: Standing = UNVERIFIED
    exploratory: tuple[Exploratory, ...] = ()
    is_exploratory: bool = False
    statistics: tuple[str, ...] = ()
    bounds: Bounds | None = None
    tests: tuple[PValue, ...] = ()

    @property
    def readings_agree(self) -> bool:
        """Whether every reading gives the same verdict."""
        return len(set(self.readings.values())) <= 1

    @property
    def missed(self) -> bool:
        """Whether `--fail-on-miss` counts the verdict as a miss."""
        counts = self.kind != "gate" and not self.superseded and not self.is_exploratory
        return self.holds is False and counts

    @property
    def missing(self) -> tuple[str, ...]:
        """What is missing, each reason once."""
        absent = [c.holds for c in self.criteria if isinstance(c.holds, Missing)]
        if isinstance(self.interval, Missing):
            absent.append(self.interval)
        return tuple(dict.fromkeys(reason for gap in absent for reason in gap.reasons))

    def __repr__(self) -> str:
        shown = f"<Decision {self.rule!r} in {self.study!r}: {self.verdict!r}"
        return f"{shown}, {self.evidence.replace('_', ' ')}, standing {self.standing.name}>"

    def _repr_html_(self) -> str:
        """Return the decision as a notebook shows it."""
        lines = [
            f"Evidence: {self.evidence.replace('_', ' ')}.",
            *([f"Estimate: {self.estimate.in_words}."] if self.estimate else []),
            *([f"Interval: {self.interval.in_words}."] if isinstance(self.interval, Interval) else []),
            *([f"Missing: {'; '.join(self.missing)}."] if self.missing else []),
            f"Registration {self.registration[0]}: {self.standing}.",
        ]
        head = f"<b>{escape(self.rule)}</b> {escape(self.title)}, study {escape(self.study)}: "
        criteria = "".join(f"<li>{criterion.marked}</li>" for criterion in self.criteria)
        return (
            f"<p>{head}<b>{escape(self.verdict.replace('_', ' '))}</b></p><ul>{criteria}</ul>"
            f"<p>{'<br>'.join(map(escape, lines))}</p>"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as it is printed with `--json`."""
        names = ("rule", "kind", "title", "study", "verdict", "evidence")
        document: dict[str, Any] = {name: getattr(self, name) for name in names}
        document["criteria"] = [criterion.as_dict() for criterion in self.criteria]
        document["estimate"] = self.estimate.as_dict() if self.estimate else None
        document["interval"] = self.interval.as_dict() if isinstance(self.interval, Interval) else None
        if self.tests:
            document["tests"] = [test.as_dict() for test in self.tests]
        if self.readings:
            document |= {"readings": self.readings, "binding_reading": self.binding}
            document["readings_agree"] = self.readings_agree
        if self.original_verdict:
            document |= {"original_verdict": self.original_verdict, "superseded": self.superseded}
        if self.missing:
            document["missing"] = list(self.missing)
        if self.bounds:
            document["missing_data"] = asdict(self.bounds)
        if self.close_calls:
            document["close_calls"] = list(self.close_calls)
        name, sha256 = self.registration
        document["registration"] = {"name": name, "sha256": sha256, **self.standing.as_dict()}
        document |= self._amendments()
        if self.secondary:
            document["secondary"] = [estimate.as_dict() for estimate in self.secondary]
        document["origin"] = self.origin.as_dict() if self.origin else None
        document["registers"] = [asdict(register) for register in self.registers]
        return document

    def _amendments(self) -> dict[str, Any]:
        document: dict[str, Any] = {}
        if self.exploratory:
            document["exploratory"] = [asdict(changed) for changed in self.exploratory]
        if self.is_exploratory:
            document["is_exploratory"] = True
        if self.amendment:
            document |= {"amended_by": self.amendment.id, "amendment": asdict(self.amendment)}
        if self.added_by:
            document["added_by"] = asdict(self.added_by)
        if self.rests_on:
            document["rests_on_amendments"] = [asdict(ref) for ref in self.rests_on]
        return document


def printed(value: Value | None) -> tuple[Any, Any]:
    """Return a value as printed: exactly, and rounded; by member where it is a series."""
    if isinstance(value, Series):
        pairs = {key: printed(member) for key, member in value.items}
        return {key: pair[0] for key, pair in pairs.items()}, {key: pair[1] for key, pair in pairs.items()}
    if value is None or isinstance(value, Missing | bool):
        return None, None
    return exact_text(value), rounded(value)


def _in_words(value: Fraction | Missing) -> str:
    return "missing" if isinstance(value, Missing) else f"{rounded(value):+.4f}"
