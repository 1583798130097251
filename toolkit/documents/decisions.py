"""Decisions, and what explains them."""

from typing import Annotated, Literal, NotRequired, TypedDict

from toolkit.documents.registers import OriginDocument
from toolkit.documents.verification import StandingDocument
from toolkit.structs import about

Kind = Literal["hypothesis", "prediction", "gate"]
Evidence = Literal["excludes_zero", "includes_zero", "includes_threshold", "not_estimated"]
IntervalSource = Literal["computed", "computed from tasks", "computed from seeds", "published"]
Relation = Literal["replaces", "restates", "adds"]

Members = dict[str, float | None]
Decimal = float | dict[str, float | None] | None
"""A number rounded to five decimals; by member where it is a series; null where it is missing."""


class ArmCountsDocument(TypedDict):
    """What one arm had, added up over the steps that are read."""

    arm: Annotated[str, about("The arm.")]
    seed: Annotated[int | None, about("The seed; null for all seeds together.")]
    count: Annotated[int | float, about("How many, such as successes; a sum where scores were measured.")]
    of: Annotated[int | float, about("Out of how many, such as episodes.")]
    counted: Annotated[str, about("The column that `count` adds up.")]
    among: Annotated[str, about("The column that `of` adds up.")]
    steps: Annotated[
        int, about("Evaluations that were added up; an area under the curve weighs them otherwise.")
    ]


class CriterionRemarks(TypedDict, total=False):
    """What a criterion says only where there is something to be said."""

    missing: Annotated[list[str], about("What is missing, each in a phrase.")]
    cautions: Annotated[list[str], about("Quotients whose denominator is not told from zero.")]
    procedures: Annotated[
        list[str], about("Which tests its comparisons with margins are, and at what level.")
    ]
    failing: Annotated[
        list[str], about("Of a test of every member of a series, those for which it does not hold.")
    ]
    counts: Annotated[
        list[ArmCountsDocument], about("What the arms had; of the seeds that failed, where few did.")
    ]
    rules: Annotated[dict[str, str], about("The verdicts of the rules that it names.")]


class OfReading(TypedDict, total=False):
    """Where a rule has several readings."""

    reading: Annotated[str, about("The reading that the criterion belongs to.")]


class Against(TypedDict, total=False):
    """Where a number is compared with another that is measured, too."""

    against: Annotated[Decimal, about("What the number is compared with.")]


class CriterionDocument(OfReading, Against, CriterionRemarks):
    """One criterion of a rule."""

    id: Annotated[str, about("Its name in the rule.")]
    text: Annotated[str, about("As registered.")]
    test: Annotated[str, about("As written in the rules.")]
    value: Annotated[
        str | dict[str, str | None] | None,
        about(
            "The number tested, exactly; by member where it is a series; null where the test is about none."
        ),
    ]
    decimal: Annotated[Decimal, about("The same, rounded to five decimals.")]
    basis: Annotated[list[str], about("What it rests on, as `counts` or `interval as published`.")]
    holds: Annotated[bool | None, about("Null: something is missing.")]


class CoverageDocument(TypedDict):
    """How many of an arm's registered episodes an estimate rests on."""

    arm: Annotated[str, about("The arm.")]
    registered: Annotated[int, about("Episodes that are registered.")]
    present: Annotated[int, about("Those with an outcome.")]
    missing: Annotated[int, about("Those without one, or without a row.")]
    excluded: Annotated[int, about("Those that are left out of the comparison.")]
    imputed: Annotated[int, about("Those that are missing and count as registered.")]


class EstimateDocument(TypedDict):
    """The value of an endpoint or a statistic, in the unit that the rules give it."""

    endpoint: Annotated[str, about("The endpoint, or the statistic.")]
    mean: Annotated[Decimal, about("Its mean; null where a member is missing.")]
    by_seed: NotRequired[Annotated[Members, about("Its value by seed.")]]
    by_run: NotRequired[Annotated[Members, about("Its value by run.")]]
    by_step: NotRequired[Annotated[Members, about("Its value by step.")]]
    by_checkpoint: NotRequired[Annotated[Members, about("Its value by checkpoint of the probe.")]]
    by_place: NotRequired[Annotated[Members, about("Its value by place in a list.")]]
    coverage: NotRequired[
        Annotated[
            list[CoverageDocument], about("By arm, where the rules say what becomes of missing episodes.")
        ]
    ]


class IntervalDocument(TypedDict):
    """A registered interval, in the estimate's unit."""

    level: Annotated[float, about("Confidence level, as 0.95.")]
    low: Annotated[float, about("Lower end of the interval.")]
    high: Annotated[float, about("Upper end of the interval.")]
    source: Annotated[
        IntervalSource, about("`computed` from episode rows; `published` where these never were.")
    ]
    method: Annotated[str, about("How it was made, and from what.")]
    low_error: NotRequired[Annotated[float, about("Monte Carlo standard error of the lower end.")]]
    high_error: NotRequired[Annotated[float, about("Monte Carlo standard error of the upper end.")]]
    resamples: NotRequired[Annotated[int, about("How many it was computed from.")]]


class SignificanceDocument(TypedDict):
    """A registered test of significance."""

    name: Annotated[str, about("Its name in the rules.")]
    endpoint: Annotated[str, about("The endpoint that it is of.")]
    method: Annotated[str, about("As `sign flip`, `wilcoxon`, `mcnemar`.")]
    over: Annotated[str, about("What its differences are of: `seeds` or `tasks`.")]
    alternative: Annotated[str, about("Where the mean is said to lie: `two-sided`, `greater`, `less`.")]
    made: Annotated[str, about("How it is made, in words.")]
    n: Annotated[int, about("Differences; 0 where p is missing.")]
    differing: Annotated[int, about("Those that are not zero.")]
    p: Annotated[str | None, about("The p-value, exactly.")]
    p_decimal: Annotated[float | None, about("The same, rounded.")]
    p_missing: NotRequired[Annotated[list[str], about("What is missing for it.")]]
    family: NotRequired[Annotated[str, about("The family that it is adjusted in.")]]
    adjusted_by: NotRequired[Annotated[str, about("How, in words.")]]
    adjusted: NotRequired[Annotated[str | None, about("The adjusted p-value, exactly.")]]
    adjusted_decimal: NotRequired[Annotated[float | None, about("The same, rounded.")]]
    adjusted_missing: NotRequired[Annotated[list[str], about("What is missing for it.")]]


class RegistrationStandingDocument(StandingDocument):
    """A registration, and what its verdicts stand on."""

    name: Annotated[str, about("Of the registration.")]
    sha256: Annotated[str, about("Digest of the list of frozen files.")]


class AmendmentRefDocument(TypedDict):
    """An amendment, and what it did to a rule."""

    id: Annotated[str, about("Its name.")]
    relation: Annotated[
        Relation, about("`restates`: the rule is unchanged, and reads what the amendment changed.")
    ]
    sha256: Annotated[str, about("Of its file.")]


class ExploratoryDocument(TypedDict):
    """What a rule would say as an amendment has it that was made after the runs, and binds nothing."""

    amendment: Annotated[str, about("Id of the amendment.")]
    sha256: Annotated[str, about("Of its file.")]
    verdict: Annotated[str, about("The verdict by it.")]
    evidence: Annotated[Evidence, about("What the interval would show.")]


class BoundsDocument(TypedDict):
    """What the episodes without an outcome could turn."""

    counts_as: Annotated[str, about("What they count as, as registered.")]
    all_fail: Annotated[str, about("The verdict with all of them failures.")]
    all_succeed: Annotated[str, about("The verdict with all of them successes.")]
    one_arm: Annotated[
        dict[str, str], about("By arm, of several: the verdict with those of this arm alone successes.")
    ]


class RegisterRefDocument(TypedDict):
    """A table that was read."""

    config: Annotated[str, about("The table.")]
    sha256: Annotated[str | None, about("Its logical row hash; null where only some of its files were read.")]
    files: Annotated[dict[str, str], about("SHA-256 of each file that was read, by its path.")]


class Remarks(TypedDict, total=False):
    """What a decision says only where there is something to be said."""

    tests: Annotated[list[SignificanceDocument], about("The tests of significance that its tests name.")]
    readings: Annotated[dict[str, str], about("Verdict by reading, where there are several.")]
    binding_reading: Annotated[str, about("The reading that decides.")]
    readings_agree: Annotated[bool, about("Whether every reading gives the same verdict.")]
    original_verdict: Annotated[str, about("Of a superseded prediction.")]
    superseded: Annotated[str, about("Why it is superseded.")]
    missing: Annotated[list[str], about("What is missing, each reason once.")]
    missing_data: BoundsDocument
    contains_pilot_rows: Annotated[str, about("Why rows of a pilot are among those that it was decided on.")]
    close_calls: Annotated[list[str], about("What other random numbers in the bootstrap could turn.")]


class Amendments(TypedDict, total=False):
    """What amendments, and endpoints beside the rule, have to do with a decision."""

    exploratory: list[ExploratoryDocument]
    is_exploratory: Annotated[
        Literal[True],
        about("The rule was added after the runs: its verdict binds nothing. Absent otherwise."),
    ]
    amended_by: Annotated[str, about("The last amendment that names the rule.")]
    amendment: AmendmentRefDocument
    added_by: Annotated[AmendmentRefDocument, about("Absent where the rule was frozen.")]
    rests_on_amendments: Annotated[
        list[AmendmentRefDocument], about("Amendments of the rules that it rests on.")
    ]
    secondary: Annotated[list[EstimateDocument], about("Shown beside the rule; they decide nothing.")]


class DecisionDocument(Remarks, Amendments):
    """The verdict on one rule in one study, with every number that it rests on."""

    rule: Annotated[str, about("Name of the rule.")]
    kind: Annotated[Kind, about("Of the rule.")]
    title: Annotated[str, about("Of the rule.")]
    study: Annotated[str, about("Name of the study.")]
    verdict: Annotated[
        str,
        about(
            "Of a hypothesis pass, miss; of a prediction met, partially_met, missed, superseded; of both "
            "not_evaluable, not_run; of a gate one of its outcomes."
        ),
    ]
    evidence: Annotated[Evidence, about("What the interval shows beside the verdict.")]
    criteria: Annotated[list[CriterionDocument], about("Every criterion of every reading.")]
    estimate: Annotated[EstimateDocument | None, about("Null where the rule names none.")]
    interval: Annotated[
        IntervalDocument | None, about("Null where the rule has none, or something is missing.")
    ]
    registration: RegistrationStandingDocument
    origin: Annotated[OriginDocument | None, about("Null for a local study.")]
    registers: Annotated[list[RegisterRefDocument], about("Every table that was read.")]


class EndpointRowsDocument(TypedDict):
    """An endpoint that a rule reads."""

    id: Annotated[str, about("Its name.")]
    title: Annotated[str, about("What it is, in a few words.")]
    unit: Annotated[str, about("Of its values.")]
    rows: Annotated[str, about("A query for `toolkit sql` that lists its rows.")]


class StatisticDocument(TypedDict):
    """A statistic that a rule names."""

    id: Annotated[str, about("Its name.")]
    title: Annotated[str, about("What it is, in a few words.")]
    unit: Annotated[str, about("Of its values.")]
    formula: Annotated[str, about("In the language of tests.")]


class SpanDocument(TypedDict):
    """Lines of a frozen document."""

    name: Annotated[str, about("Of the span in the rules.")]
    lines: Annotated[list[int], about("The first and the last, from 1.")]
    sha256: Annotated[str, about("Of these lines.")]
    text: Annotated[str | None, about("Null where the document is not at hand.")]


class RestatedDocument(TypedDict):
    """What a rule restates of a document that was frozen elsewhere."""

    document: Annotated[str, about("Its name.")]
    sha256: Annotated[str, about("Of the document, as recorded.")]
    of_frozen_rule: Annotated[bool, about("Whether the lines are those of the rule as it was frozen.")]
    is_at_hand: Annotated[bool, about("Whether the document is here.")]
    remedy: Annotated[str | None, about("How to get the document.")]
    spans: list[SpanDocument]


class AdditionDocument(TypedDict):
    """The amendment that added a rule."""

    id: Annotated[str, about("Of the amendment.")]
    dated: Annotated[str, about("Its day, YYYY-MM-DD.")]
    seen: Annotated[str, about("What had been seen by then, in its author's words.")]


class RuleDeviationDocument(TypedDict):
    """A deviation that concerns a rule."""

    id: Annotated[str, about("Its name.")]
    title: Annotated[str, about("What it is, in a few words.")]
    text: Annotated[str, about("What happened, in its author's words.")]


class ExplanationRemarks(TypedDict, total=False):
    """What an explanation says only where there is something to be said."""

    statistics: list[StatisticDocument]
    restates: RestatedDocument
    addition: AdditionDocument


class ExplanationDocument(DecisionDocument, ExplanationRemarks):
    """A decision with its rule's words, and where the rows of its endpoints are."""

    text: Annotated[str, about("The rule as registered.")]
    confidence: Annotated[str | None, about("That of a prediction's author.")]
    readings_text: Annotated[dict[str, str] | None, about("What each reading means.")]
    endpoints: list[EndpointRowsDocument]
    deviations: list[RuleDeviationDocument]


class OperatorDocument(TypedDict):
    """An operator of the rule language."""

    takes: Annotated[list[str], about("The kind of each argument.")]
    gives: Annotated[str, about("The kind of its value.")]
    meaning: Annotated[str, about("In words.")]


class LanguageDocument(TypedDict):
    """The rule language: what `explain --language` prints."""

    operators: dict[str, OperatorDocument]
    comparisons: Annotated[tuple[str, ...], about("Its comparisons.")]
    arithmetic: Annotated[tuple[str, ...], about("Its arithmetic.")]
    over_steps: Annotated[dict[str, str], about("How several steps become one number.")]
    declared: Annotated[dict[str, str], about("Tables of rules.toml, and what each declares.")]
    interval_methods: Annotated[dict[str, str], about("What each does, and when its level holds.")]
