"""`toolkit verify`: whatever can be verified, from its bytes to rows that are played again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli import offers, output, standing
from toolkit.cli.audit import MOST, fresh_seed
from toolkit.cli.authorities import trust_option
from toolkit.cli.standing import require_option
from toolkit.errors import IncompleteError, ToolkitError, UsageError, did_you_mean
from toolkit.places import find_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolkit.api.study import Study
    from toolkit.documents.verification import (
        ThingKind,
        ThingVerdict,
        VerifiedStepDocument,
        VerifiedThingDocument,
    )
    from toolkit.places import Home
    from toolkit.prereg.verification import Standing
    from toolkit.verification.steps import Checked

DEPTHS = ("files", "rows", "registration", "replay")
SAMPLE = 16
VERDICTS: dict[int, ThingVerdict] = {4: "damaged", 1: "not_verified", 3: "incomplete", 0: "verified"}
"""What a thing is by its exit code, the worst first."""
CODES = {"failed": 1, "missing": 3, "damaged": 4}
OUTCOMES = {1: "failed", 3: "missing"}
MANIFEST, RULES = "MANIFEST.json", "rules.toml"


@dataclass
class Thing:
    """A thing that is verified, and how far that came."""

    name: str
    kind: ThingKind
    verify: Callable[[Thing, Options], Iterator[tuple[str, str, str]]]
    steps: list[VerifiedStepDocument] = field(default_factory=list)
    code: int = 0
    standing: tuple[str, Standing] | None = None
    """Its registration, and what that stands on."""

    def document(self) -> VerifiedThingDocument:
        """Return what is printed of it with `--json`."""
        return {"thing": self.name, "kind": self.kind, "verdict": VERDICTS[self.code], "steps": self.steps}


@dataclass(frozen=True)
class Options:
    """How deep is verified, and with what."""

    home: Home
    depth: str
    sample: int
    seed: int
    trust_files: tuple[Path, ...]
    document: Path | None
    roots: tuple[Path, ...]
    say: Callable[[str], None]


@click.command()
@click.argument("things", nargs=-1, metavar="[THING]...", shell_complete=offers.studies)
@click.option(
    "--depth",
    type=click.Choice(DEPTHS),
    default="registration",
    help="How deep studies are verified: each takes in those before it.",
)
@click.option(
    "--replay",
    type=click.IntRange(1, MOST),
    metavar="N",
    help=f"Play N random rows of a study again; {SAMPLE} with --depth replay.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**63), help="Seed of an earlier replay; a fresh one if left out."
)
@click.option("--document", type=output.FILE, help="The document that a token is for.")
@click.option("--root", "roots", type=output.FILE, multiple=True, help="A token's pinned certificates.")
@trust_option
@require_option
@output.json_option
@click.pass_context
def verify(
    context: click.Context,
    *,
    things: tuple[str, ...],
    depth: str,
    replay: int | None,
    seed: int | None,
    document: Path | None,
    roots: tuple[Path, ...],
    trust_files: tuple[Path, ...],
    least: str | None,
    as_json: bool,
) -> None:
    """Verify THINGS: registrations, studies, timestamp tokens, exported statements; else all that is here.

    A study is verified by its files, its rows and what follows from them, its registration, and, where that
    is asked for, rows that are drawn at random and played again. What fails keeps nothing else from being
    verified; the exit code is that of the worst.

    \b
    Examples:
      toolkit verify --depth files
      toolkit verify embedded --replay 4
      toolkit verify published --depth rows --json
      toolkit verify token.tsr --document protocol.md --root root.pem
      toolkit verify statements/H2a.statement.json
    """
    home = find_home()
    if replay is None:
        replay = SAMPLE if depth == "replay" else 0
    elif depth in {"files", "rows"}:
        raise UsageError("rows are played again after all else is verified", remedy="leave --depth out")
    found = [thing for name in things for thing in _named(name, home)] if things else _all_here(home)
    with output.counted("verify") as (watch, _):
        at = 0
        options = Options(
            home=home,
            depth="replay" if replay else depth,
            sample=replay,
            seed=fresh_seed() if seed is None else seed,
            trust_files=trust_files,
            document=document,
            roots=roots,
            say=lambda step: watch(at, len(found), f"{found[at].name}: {step}"),
        )
        for at, thing in enumerate(found):  # noqa: B007 - `say` reads where it is
            _verify(thing, options)
    if as_json:
        output.print_json([thing.document() for thing in found])
    else:
        for thing in found:
            _print(thing)
    stood = dict(thing.standing for thing in found if thing.standing)
    if least:
        standing.end(context, stood, least)
    codes = {thing.code for thing in found}
    context.exit(next(code for code in VERDICTS if code in codes or not code))


def _verify(thing: Thing, options: Options) -> None:
    """Verify a thing, and note every step; the first that fails is its last."""
    step = "files"
    try:
        for step, outcome, detail in thing.verify(thing, options):
            if detail:
                thing.steps.append({"step": step, "outcome": outcome, "detail": detail})  # type: ignore[typeddict-item]
                thing.code = _worst(thing.code, CODES.get(outcome, 0))
    except UsageError:
        raise
    except ToolkitError as error:
        outcome = OUTCOMES.get(error.exit_code, "damaged")
        thing.steps.append({"step": step, "outcome": outcome, "detail": str(error)})  # type: ignore[typeddict-item]
        thing.code = _worst(thing.code, CODES[outcome])


def _worst(*codes: int) -> int:
    return next(code for code in VERDICTS if code in codes)


def _named(name: str, home: Home) -> list[Thing]:
    """Return what a name means: a file, a folder, a registration, a study, or both of these."""
    path = Path(name)
    if path.is_file():
        is_statement = path.suffix == ".json"
        return [Thing(name, "export", _statement) if is_statement else Thing(name, "token", _token)]
    if path.is_dir() and (path / RULES).is_file():
        return [Thing(name, "registration", _registration)]
    found = [Thing(name, "registration", _registration)] if name in home.registration_names() else []
    if home.find_study(name) is not None or not found:
        known = {*home.registration_names(), *(home.studies() if home.has_studies else ())}
        if not (found or (path / MANIFEST).is_file() or "@" in name or home.find_study(name) is not None):
            raise UsageError(
                f"there is nothing called {name!r} to be verified",
                expected="a registration, a study, a token, a statement, or a folder with one",
                remedy=did_you_mean(name, known),
            )
        found.append(Thing(name, "study", _study))
    return found


def _all_here(home: Home) -> list[Thing]:
    from toolkit.prereg.registration import is_draft

    home.say_absent(output.remark)
    frozen = [name for name in home.registration_names() if not is_draft(home.registration_folder(name))]
    found = [Thing(name, "registration", _registration) for name in frozen]
    found += [Thing(name, "study", _study) for name in (home.studies() if home.has_studies else ())]
    if not found:
        raise IncompleteError("there is nothing here to be verified", where=home.root)
    return found


def _study(thing: Thing, options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield the steps of a study down to a depth."""
    from toolkit.verification.steps import STEPS

    study = api.open_study(thing.name, options.home)
    at = _opened(study, options)
    if at.case is not None:
        thing.standing = at.case.registration.name, at.case.standing
    for step in DEPTHS[: DEPTHS.index(options.depth) + 1]:
        yield step, "passed", ""  # an error is this step's
        detail = STEPS[step](at)
        outcome = "passed"
        if step == "registration":
            outcome = {"not_verified": "failed", "incomplete": "missing"}.get(at.verdict, "passed")
        yield step, outcome, detail


def _opened(study: Study, options: Options) -> Checked:
    """Return a study to be checked, with its registration where it belongs to one that is here."""
    from toolkit.verification.steps import Checked

    at = Checked(study, None, options.say, replayed=options.sample, seed=options.seed)
    api.attach_registration(at, options.home, trust_files=options.trust_files)
    return at


def _registration(thing: Thing, options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield the steps of a registration."""
    from toolkit.prereg.verification import standing_of

    options.say("registration")
    result = api.verify(
        _folder(thing.name, options.home), None, options.home, trust_files=options.trust_files
    )
    thing.standing = result.registration, standing_of(result)
    for check in result.checks:
        yield check.name, check.outcome, check.detail
    thing.code = {"verified": 0, "incomplete": 3}.get(result.verdict, 1)


def _folder(name: str, home: Home) -> Path:
    return home.registration_folder(name) if name in home.registration_names() else Path(name)


def _token(thing: Thing, options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield the one step of a token, which is fifteen checks."""
    from datetime import UTC, datetime

    from toolkit.files import read_bytes, read_up_to
    from toolkit.prereg.evidence import CERTIFICATE, read_blocks
    from toolkit.prereg.token.der import MAX_BYTES
    from toolkit.prereg.token.verify import Material, verify_token

    if options.document is None or not options.roots:
        raise UsageError(
            "a token is verified for a document, under roots that somebody pinned",
            expected="--document FILE --root PEM",
            where=thing.name,
            remedy="`toolkit verify-token` takes a digest, requests and revocation lists, too",
        )
    material = Material(
        document=read_bytes(options.document),
        roots=tuple(der for path in options.roots for der in read_blocks(path, CERTIFICATE)),
    )
    verdict = verify_token(read_up_to(Path(thing.name), MAX_BYTES + 1), material, datetime.now(UTC))
    outcome = {"verified": "passed", "not_verified": "failed"}.get(verdict.verdict, "missing")
    yield verdict.failed_check or "token", outcome, verdict.message


def _statement(thing: Thing, options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield the steps of an exported decision: what it names is here, and decided so."""
    from toolkit.exports.in_toto import differences, read_statement

    yield "statement", "passed", ""
    statement = read_statement(Path(thing.name))
    name = statement["predicate"]["study"]["name"]
    yield "statement", "passed", f"a decision on study {name}"
    options.say(f"study {name}")
    case = api.open_case(api.open_study(name, options.home), options.home, trust_files=options.trust_files)
    thing.standing = case.registration.name, case.standing
    for part, differing in differences(statement, case):
        yield part, "failed" if differing else "passed", differing or "as here"


def _print(thing: Thing) -> None:
    verdict = VERDICTS[thing.code]
    output.say_line(
        output.bold(thing.name), f" ({thing.kind}): ", output.styled(verdict, verdict.replace("_", " "))
    )
    for step in thing.steps:
        first, *more = step["detail"].split("\n")
        output.say_line(f"  {step['step']}: ", output.styled(step["outcome"]), f", {first}")
        for line in more:
            output.say_line(f"    {line}")
