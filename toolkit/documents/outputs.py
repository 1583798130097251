"""Which document each command prints with `--json`; documents of the site, errors and completion."""

from fractions import Fraction
from functools import cache
from pkgutil import resolve_name
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

from toolkit.cli import options, verify
from toolkit.decisions.case import Explanation, Language
from toolkit.decisions.decision import Decision
from toolkit.documents import probe, registers, registrations, runs, world
from toolkit.drafting import power
from toolkit.errors import ExitCode
from toolkit.prereg.evidence import JudgedToken
from toolkit.prereg.verification import Verification
from toolkit.registers import diff
from toolkit.registers.hub import transfer
from toolkit.structs import UNSET, UnsetType, about, printed_fields


class ErrorFacts(TypedDict):
    """What stopped a command."""

    problem: Annotated[str, about("One sentence.")]
    expected: Annotated[str | None, about("What should have been there.")]
    found: Annotated[str | None, about("What was there.")]
    where: Annotated[str | None, about("File, table, column or rule.")]
    remedy: Annotated[str | None, about("What the user can do about it.")]
    exit_code: Annotated[
        ExitCode,
        about("1: a verification failed; 2: wrong usage; 3: an input is missing; 4: damaged data."),
    ]


class ErrorDocument(TypedDict):
    """The document of a command that failed; a check that ran and found something prints its own."""

    error: ErrorFacts


ERROR = "error"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
OUTPUTS: dict[str, object] = {
    "decide": list[Decision],
    "explain": list[Explanation] | Language,
    "verify": list[verify.VerifiedThing],
    "verify-prereg": list[Verification],
    "verify-token": JudgedToken,
    "adopt": "toolkit.cli.freeze:AdoptDocument",
    "new-study": registrations.NewStudyDocument,
    "rehearse": registrations.RehearsalDocument,
    "freeze": (
        "toolkit.cli.freeze:FreezeDocument",
        "toolkit.cli.freeze:DryFreezeDocument",
        "toolkit.cli.freeze:TemplateDocument",
    ),
    "amend": ("toolkit.prereg.freeze:Added", "toolkit.cli.freeze:TemplateDocument"),
    "deviate": ("toolkit.prereg.freeze:Added", "toolkit.cli.freeze:TemplateDocument"),
    "registers audit": registers.Audited,
    "registers build": registers.BuiltRegisters,
    "registers card": registers.FilledCard,
    "registers diff": diff.StudyDifference,
    "registers import": registers.ImportedRegisters,
    "registers list": list[registers.ListedStudy],
    "registers pull": registers.Pulled,
    "registers push": transfer.Push,
    "registers schema": registers.RegistersSchema,
    "registers verify": list[registers.VerifiedRegisters],
    "export": runs.ExportDocument,
    "sql": registers.AnswerRows | registers.WrittenAnswer,
    "pools build": registers.BuiltPools,
    "pools list": list[registers.PoolSummary],
    "pools show": registers.ShownTaskDocument,
    "pools verify": registers.VerifiedPools,
    "episode play": world.EpisodeDocument,
    "episode replay": world.ReplayDocument,
    "evaluate": "toolkit.lab.evaluating:Evaluation",
    "draw": world.DrawDocument,
    "backoffice mcp": ErrorDocument,  # stdout belongs to the protocol
    "backoffice schema": world.Schemas,
    "world check": "toolkit.lab.worlds.bfcl.world:Parity",
    "noise mcp": ErrorDocument,
    "noise propose": "toolkit.noise.mcp.proposal:ProposalDocument",
    "noise replay": "toolkit.noise.mcp.record:NoiseReplayDocument",
    "pairing inspect": "toolkit.lab.inspection.inspection:InspectionDocument",
    "pairing verify": "toolkit.noise.trainers.groups:Verified",
    "theory bandit": "toolkit.lab.commands.theory:AlignedBandit",
    "theory condition": "toolkit.lab.commands.theory:ExactCondition",
    "theory drift": "toolkit.lab.commands.theory:BanditDrift",
    "theory equal-variance": "toolkit.lab.commands.theory:EqualVariance",
    "theory luck": "toolkit.lab.commands.theory:LuckyGroup",
    "theory spurious": "toolkit.lab.commands.theory:SpuriousRate",
    "power": power.SimulatedPower,
    "train": (
        "toolkit.lab.plan:TrainingPlan",
        "toolkit.lab.play.training_jobs:Trial",
        runs.TrainedDocument,
    ),
    "study run": runs.StudyRunDocument | runs.StudyCheckDocument,
    "study status": "toolkit.lab.play.workplace:StudyStatus",
    "probe advise": probe.AdviceDocument,
    "probe drift": probe.PredictedDriftDocument,
    "probe report": probe.ProbeReportDocument,
    "probe run": probe.ProbeRunDocument,
    "site build": "toolkit.site.commands.site:BuiltSite",
    "site check": "toolkit.site.commands.site:CheckedSite",
    "site serve": "toolkit.site.commands.site:ServedSite",
    "reproduce": runs.ReproductionDocument,
    "completion": options.Completion,
    "schema": list[str] | dict[str, object],
    ERROR: ErrorDocument,
}
"""Command → type of its document, "module:Type" where that module is no part of the core, or several of them.

What a command prints that fails is an `error`.
"""


def printed_type(kind: Any) -> Any:
    """Return a type as it is printed, from which msgspec makes its schema."""
    origin, parts = get_origin(kind), tuple(printed_type(part) for part in get_args(kind))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _printed_struct(kind)
    if is_typeddict(kind):
        return _printed_dict(kind)
    if origin in (NotRequired, Required):
        return parts[0]
    if origin is Annotated:
        return Annotated[parts[0], *kind.__metadata__]
    if not parts or origin is Literal:
        return float if kind is Fraction else kind
    return Union[parts] if origin is UnionType else origin[parts]  # noqa: UP007 - a tuple of types


@cache
def _printed_dict(kind: Any) -> Any:
    made: Any = {}
    for key, hint in get_type_hints(kind, include_extras=True).items():
        printed = printed_type(hint)
        made[key] = printed if key in kind.__required_keys__ else NotRequired[printed]
    named: Any = TypedDict(kind.__name__, made)  # type: ignore[misc]
    named.__doc__ = kind.__doc__
    return named


@cache
def _printed_struct(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for _, omitted, keys in printed_fields(kind):
        for shown in (shown for shown in keys if shown.key):
            made = printed_type(shown.kind)
            made = Annotated[made, about(shown.text)] if shown.text else made
            plain = shown.kind.__origin__ if get_origin(shown.kind) is Annotated else shown.kind
            may_lack = omitted is not UNSET or UnsetType in get_args(plain)
            fields.append((shown.key, made | UnsetType, UNSET) if may_lack else (shown.key, made))
    options: Any = {"forbid_unknown_fields": True, "kw_only": True}
    return msgspec.defstruct(kind.__name__, fields, namespace={"__doc__": kind.__doc__}, **options)


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a command's document, made of its type."""
    kind = OUTPUTS[name]
    # Documents of which one is printed are told apart by their keys, which no parser is asked to do.
    named = get_args(kind) if isinstance(kind, UnionType) else kind if isinstance(kind, tuple) else (kind,)
    kinds = [printed_type(resolve_name(each) if isinstance(each, str) else each) for each in named]
    made, parts = msgspec.json.schema_components(kinds, schema_hook=_anything, ref_template="#/$defs/{name}")
    whole = made[0] if len(made) == 1 else {"anyOf": list(made)}
    reference = str(whole.get("$ref", "")).rpartition("/")[2]
    for part in parts.values():
        if "properties" in part:
            part.setdefault("additionalProperties", False)
    head = {"$schema": DIALECT, "$id": f"{name.replace(' ', '-')}.json", "title": _title(name)}
    return {**(parts.pop(reference) if reference else whole), **head, **({"$defs": parts} if parts else {})}


def _anything(kind: type) -> dict[str, Any]:
    if kind is object:
        return {"title": "any value"}
    raise NotImplementedError(kind)


def _title(name: str) -> str:
    return "What a command prints with --json where it fails" if name == ERROR else f"toolkit {name} --json"
