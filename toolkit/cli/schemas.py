"""`toolkit schema`: which document each command prints with `--json`, and the schema made of its type."""

from fractions import Fraction
from functools import cache
from pkgutil import resolve_name
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
)

import click
import msgspec

from toolkit.cli import extract, new_study, options, output, registers, reproduce, verify
from toolkit.cli.options import argument, command, flag, json_option
from toolkit.cli.registers import describe
from toolkit.decisions.case import Explanation, Language
from toolkit.decisions.decision import Decision
from toolkit.drafting import power
from toolkit.errors import ExitCode, UsageError, did_you_mean
from toolkit.prereg.evidence import JudgedToken
from toolkit.prereg.verification import Verification
from toolkit.registers import diff
from toolkit.registers.hub import transfer
from toolkit.structs import UNSET, Document, UnsetType, about, printed_fields


class ErrorFacts(Document, frozen=True):
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


class ErrorDocument(Document, frozen=True):
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
    "new-study": new_study.NewStudy,
    "rehearse": new_study.RehearsedStudy,
    "freeze": (
        "toolkit.cli.freeze:FreezeDocument",
        "toolkit.cli.freeze:DryFreezeDocument",
        "toolkit.cli.freeze:TemplateDocument",
    ),
    "amend": ("toolkit.prereg.freeze:Added", "toolkit.cli.freeze:TemplateDocument"),
    "deviate": ("toolkit.prereg.freeze:Added", "toolkit.cli.freeze:TemplateDocument"),
    "registers audit": verify.Audited,
    "registers build": registers.BuiltRegisters,
    "registers card": registers.FilledCard,
    "registers diff": diff.StudyDifference,
    "registers import": registers.ImportedRegisters,
    "registers list": list[registers.ListedStudy],
    "registers pull": registers.Pulled,
    "registers push": transfer.Push,
    "registers schema": registers.RegistersSchema,
    "registers verify": list[registers.VerifiedRegisters],
    "export": extract.Exported,
    "sql": extract.AnswerRows | extract.WrittenAnswer,
    "pools build": "toolkit.lab.commands.pools:BuiltPools",
    "pools list": "toolkit.lab.task_pools:PoolSummaries",
    "pools show": "toolkit.lab.commands.pools:ShownTask",
    "pools verify": "toolkit.lab.commands.pools:VerifiedPools",
    "episode play": "toolkit.lab.commands.episode:PlayedEpisode",
    "episode replay": "toolkit.lab.commands.episode:ReplayedEpisode",
    "evaluate": "toolkit.lab.evaluating:Evaluation",
    "draw": "toolkit.lab.commands.draw:DrawDocument",
    "backoffice mcp": ErrorDocument,  # stdout belongs to the protocol
    "backoffice schema": list[dict[str, object]] | dict[str, object],
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
        "toolkit.lab.commands.train:Trained",
    ),
    "study run": ("toolkit.lab.commands.study:PlayedStudy", "toolkit.lab.commands.study:CheckedStudy"),
    "study status": "toolkit.lab.play.workplace:StudyStatus",
    "probe advise": "toolkit.lab.probe.advice:Advice",
    "probe drift": "toolkit.lab.probe.predicted:PredictedDrift",
    "probe report": "toolkit.lab.commands.probe:ProbeReport",
    "probe run": "toolkit.lab.commands.probe:MeasuredStudy",
    "site build": "toolkit.site.commands.site:BuiltSite",
    "site check": "toolkit.site.commands.site:CheckedSite",
    "site serve": "toolkit.site.commands.site:ServedSite",
    "reproduce": reproduce.Reproduction,
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
    if origin is Annotated:
        return Annotated[parts[0], *kind.__metadata__]
    if not parts or origin is Literal:
        return float if kind is Fraction else kind
    return Union[parts] if origin is UnionType else origin[parts]  # noqa: UP007 - a tuple of types


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


@command()
@click.pass_context
def schema(
    context: click.Context,
    *,
    words: tuple[str, ...] = argument(nargs=-1, metavar="[OUTPUT]..."),
    registers: bool = flag(help="Describe the columns of table OUTPUT, or of every table."),
    as_json: bool = json_option,
) -> None:
    """Print the JSON Schema of OUTPUT: what a command prints with --json.

    Without OUTPUT, list them. Three belong to no command: error is what every command prints when it fails,
    rules describes rules.toml, and amendment an amendment's file. The dialect is 2020-12.

    \b
    Examples:
      toolkit schema
      toolkit schema decide
      toolkit schema registers verify > registers-verify.json
      toolkit schema rules --json
      toolkit schema --registers evaluations
    """
    if registers:
        context.invoke(describe, tables=words, as_json=as_json)
        return
    from toolkit.rules import schema as of_rules

    outputs = {name.replace(" ", "-"): name for name in OUTPUTS}
    names = sorted({*outputs, *of_rules.FILES})
    if not words:
        output.tell(names, *names, as_json=as_json)
        return
    name = "-".join(words)
    if name not in names:
        raise UsageError(
            f"there is no schema of {name!r}", expected=", ".join(names), remedy=did_you_mean(name, names)
        )
    is_output = name in outputs
    output.print_json(json_schema(outputs[name]) if is_output else of_rules.json_schema(name))
