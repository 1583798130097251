"""`toolkit verify`: a registration, a study, a token, an export, or everything that is here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli import offers, output
from toolkit.errors import DamagedError, UsageError, VerificationError, did_you_mean
from toolkit.places import find_home

if TYPE_CHECKING:
    from toolkit.documents.verification import VerifiedDocument
    from toolkit.places import Home

DEPTHS = ("registration", "rows", "replay")


@dataclass
class Things:
    """What is to be verified, by kind."""

    registrations: list[str] = field(default_factory=list)
    studies: list[str] = field(default_factory=list)
    statements: list[Path] = field(default_factory=list)


@click.command()
@click.argument("things", metavar="[THING]...", nargs=-1, shell_complete=offers.studies)
@click.option(
    "--depth",
    type=click.Choice(DEPTHS),
    default="rows",
    help="The registration alone, files and rows too, or rows played again as well.",
)
@click.option("--sample", type=click.IntRange(1), default=4, help="With replay: how many rows of a study.")
@click.option("--seed", type=click.IntRange(0), help="With replay: draws the same rows again.")
@output.json_option
@click.pass_context
def verify(
    context: click.Context,
    *,
    things: tuple[str, ...],
    depth: str,
    sample: int,
    seed: int | None,
    as_json: bool,
) -> None:
    """Verify each THING: a registration, a study, a token of either, or an in-toto statement of a decision.

    Without THING, everything that is here. Where a registration and a study have one name, both are verified.

    \b
    registration  recorded files, timestamps, chronology: as verify-prereg
    rows          SHA-256 of every file, every row against the schema, every
                  summary, figure and decision derived from the rows again
    replay        rows drawn at random, played again by their checkpoints

    \b
    Examples:
      toolkit verify published
      toolkit verify embedded --depth registration
      toolkit verify embedded --depth replay --sample 2 --json
      toolkit verify statements/H2a.statement.json
    """
    home = find_home()
    found = _sorted(things, home)
    document: VerifiedDocument = {
        "verdict": "verified",
        "registrations": [],
        "studies": [],
        "replayed": [],
        "statements": [],
    }
    verdicts: set[str] = set()
    lines: list[str] = []
    for name in found.registrations:
        done = api.verify(home.registration_folder(name), api.studies_here(home))
        document["registrations"].append(done.as_dict())
        verdicts.add(done.verdict)
        lines.append(f"registration {done.registration}: {done.verdict.replace('_', ' ')}")
        failed = [check for check in done.checks if check.outcome != "passed"]
        lines += [f"  {check.name}: {line}" for check in failed for line in check.detail.split("\n")]
    if depth != "registration" and found.studies:
        from toolkit.cli.registers import verified

        opened = [api.open_study(name, home) for name in found.studies]
        document["studies"], in_lines = verified(opened)
        verdicts |= {study["verdict"] for study in document["studies"]}
        lines += in_lines
        if depth == "replay":
            from toolkit.cli.audit import audited

            for study in opened:
                replayed, in_lines = audited(study, sample, seed)
                document["replayed"].append(replayed)
                lines += in_lines
    for path in found.statements:
        rule = _check_statement(path, home)
        document["statements"].append({"file": str(path), "rule": rule})
        lines.append(f"{path.name}: the decision on {rule} is what the registers here give")
    is_failed, is_incomplete = "not_verified" in verdicts, "incomplete" in verdicts
    document["verdict"] = "not_verified" if is_failed else "incomplete" if is_incomplete else "verified"
    output.tell(document, *lines, as_json=as_json)
    context.exit(1 if is_failed else 3 if is_incomplete else 0)


def _sorted(things: tuple[str, ...], home: Home) -> Things:
    """Return what each name or path is; with none, everything that is here and not a draft."""
    from toolkit.prereg.registration import is_draft

    found = Things()
    if not things:
        frozen = [name for name in home.registration_names() if not is_draft(home.registrations / name)]
        return Things(frozen, list(home.studies()) if home.has_studies else [])
    for thing in things:
        path = Path(thing)
        is_study = thing in home.studies() or (path / "MANIFEST.json").is_file()
        is_registration = thing in home.registration_names() or (path / "rules.toml").is_file()
        if is_registration:
            found.registrations.append(thing)
        if is_study or (not is_registration and "/" in thing and not path.exists()):
            found.studies.append(thing)  # of the Hub, where it is no folder
        elif path.is_file() and path.suffix == ".json":
            found.statements.append(path)
        elif path.is_file():
            found.registrations.append(str(_around(path)))
        elif not is_registration:
            known = [*home.registration_names(), *home.studies()]
            raise UsageError(
                f"{thing!r} is neither a registration nor a study, nor a file",
                expected=", ".join(dict.fromkeys(known)),
                remedy=did_you_mean(thing, known),
            )
    return found


def _around(path: Path) -> Path:
    """Return the registration that a token, or another file of one, belongs to."""
    for folder in path.resolve().parents:
        if (folder / "rules.toml").is_file():
            return folder
    raise UsageError(
        "the file lies in no registration",
        where=path,
        remedy=f"verify a token alone: toolkit verify-token {path} --document FILE --root PEM",
    )


def _check_statement(path: Path, home: Home) -> str:
    """Check that an in-toto statement is what the study here gives, byte for byte; return its rule."""
    from toolkit.exports.in_toto import STATEMENT_TYPE, statements
    from toolkit.files import read_bytes

    raw = read_bytes(path)
    try:
        statement = json.loads(raw)
        name, rule = statement["predicate"]["study"]["name"], statement["predicate"]["decision"]["rule"]
        is_one = statement["_type"] == STATEMENT_TYPE
    except (ValueError, KeyError, TypeError):
        is_one = False
    if not is_one:
        raise DamagedError("the file is not an in-toto statement of a decision", where=path)
    ((_, made),) = statements(api.open_case(api.open_study(str(name), home), home), [str(rule)])
    if raw != made:
        raise VerificationError(
            f"the statement on {rule} is not what the registers of {name} give",
            where=path,
            remedy=f"compare it with: toolkit export {name} --as in-toto --rule {rule}",
        )
    return str(rule)
