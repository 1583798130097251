"""Which document each command prints with `--json`; documents of the site, errors and completion."""

from typing import Annotated, Literal, TypedDict

from toolkit.documents import decisions, probe, registers, registrations, runs, theory, verification, world

Shell = Literal["bash", "zsh", "fish"]
ExitCode = Literal[1, 2, 3, 4]


class ErrorFacts(TypedDict):
    """What stopped a command."""

    problem: Annotated[str, "One sentence."]
    expected: Annotated[str | None, "What should have been there."]
    found: Annotated[str | None, "What was there."]
    where: Annotated[str | None, "File, table, column or rule."]
    remedy: Annotated[str | None, "What the user can do about it."]
    exit_code: Annotated[
        ExitCode,
        "1: a verification failed; 2: wrong usage; 3: an input is missing; 4: damaged or inconsistent data.",
    ]


class ErrorDocument(TypedDict):
    """The document of a command that failed; a check that ran and found something prints its own."""

    error: ErrorFacts


class CompletionDocument(TypedDict):
    """What has a shell complete commands, rules, studies and runs."""

    shell: Annotated[Shell, "Which shell."]
    script: Annotated[str, "In the shell's language."]


class ZipDocument(TypedDict):
    """The site as a zip."""

    file: Annotated[str, "Its path."]
    sha256: Annotated[str, "Of the zip."]


class SiteBuildDocument(TypedDict):
    """The site as it was built."""

    folder: Annotated[str, "Where it lies."]
    pages: Annotated[int, "Files of the site."]
    rendered: Annotated[bool, "False where the site was built from the same inputs and is as it was written."]
    changed: Annotated[list[str], "Files that have other bytes than before."]
    zip: Annotated[ZipDocument | None, "With --zip."]


class FindingDocument(TypedDict):
    """One thing that is wrong with the site."""

    file: Annotated[str, "Below the site's folder."]
    kind: Annotated[str, "As `differs`, `absent`, `unexpected`, `broken link`, `over budget`."]
    what: Annotated[str, "What was found there."]


class SiteCheckDocument(TypedDict):
    """Whether the site is what its registers give, and works as a site."""

    folder: Annotated[str, "Where it lies."]
    files: Annotated[int, "That the registers give."]
    identical: Annotated[bool, "Whether it is what the registers give, byte for byte."]
    findings: list[FindingDocument]


class SiteServeDocument(TypedDict):
    """The site as it is served; printed before the first request."""

    address: Annotated[str, "Where a browser finds it."]
    folder: Annotated[str, "What is served."]


ERROR = "error"
OUTPUTS: dict[str, object] = {
    "decide": list[decisions.DecisionDocument],
    "explain": list[decisions.ExplanationDocument] | decisions.LanguageDocument,
    "verify": list[verification.VerifiedThingDocument],
    "verify-prereg": list[verification.VerificationDocument],
    "verify-token": verification.TokenVerdictDocument,
    "adopt": registrations.AdoptDocument,
    "new-study": registrations.NewStudyDocument,
    "rehearse": registrations.RehearsalDocument,
    "freeze": registrations.FreezeDocument | registrations.DryFreezeDocument | registrations.TemplateDocument,
    "amend": registrations.AdditionEntryDocument | registrations.TemplateDocument,
    "deviate": registrations.AdditionEntryDocument | registrations.TemplateDocument,
    "registers audit": registers.AuditDocument,
    "registers build": registers.BuiltRegistersDocument,
    "registers card": registers.CardDocument,
    "registers diff": registers.DifferenceDocument,
    "registers import": registers.ImportDocument,
    "registers list": list[registers.ListedStudyDocument],
    "registers pull": registers.PullDocument,
    "registers push": registers.PushDocument,
    "registers schema": registers.RegistersSchemaDocument,
    "registers verify": list[registers.VerifiedStudyDocument],
    "export": runs.ExportDocument,
    "sql": registers.AnswerRows | registers.ParquetDocument,
    "pools build": registers.BuiltPoolsDocument,
    "pools list": list[registers.PoolDocument],
    "pools show": registers.ShownTaskDocument,
    "pools verify": registers.VerifiedPoolsDocument,
    "episode play": world.EpisodeDocument,
    "episode replay": world.ReplayDocument,
    "evaluate": runs.EvaluationDocument,
    "draw": world.DrawDocument,
    "backoffice mcp": ErrorDocument,  # stdout belongs to the protocol
    "backoffice schema": world.Schemas,
    "world check": world.ParityDocument,
    "noise mcp": ErrorDocument,
    "noise propose": world.ProposalDocument,
    "noise replay": world.NoiseReplayDocument,
    "pairing inspect": world.InspectionDocument,
    "pairing verify": world.VerifiedGroupsDocument,
    "theory bandit": theory.BanditDocument,
    "theory condition": theory.ConditionDocument,
    "theory drift": theory.DriftDocument,
    "theory equal-variance": theory.EqualVarianceDocument,
    "theory luck": theory.LuckDocument,
    "theory spurious": theory.SpuriousDocument,
    "power": theory.PowerDocument,
    "train": runs.TrainingPlanDocument | runs.TrialDocument | runs.TrainedDocument,
    "study run": runs.StudyRunDocument | runs.StudyCheckDocument,
    "study status": runs.StudyStatusDocument,
    "probe advise": probe.AdviceDocument,
    "probe drift": probe.PredictedDriftDocument,
    "probe report": probe.ProbeReportDocument,
    "probe run": probe.ProbeRunDocument,
    "site build": SiteBuildDocument,
    "site check": SiteCheckDocument,
    "site serve": SiteServeDocument,
    "reproduce": runs.ReproductionDocument,
    "completion": CompletionDocument,
    "schema": list[str] | dict[str, object],
    ERROR: ErrorDocument,
}
"""Command → type of its document; what a command prints that fails is an `error`."""
