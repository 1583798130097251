"""`toolkit verify`: whatever can be verified, from its bytes to rows that are played again."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from toolkit import cases
from toolkit.cli import output
from toolkit.cli.decide import end
from toolkit.cli.options import (
    FILE,
    STUDY,
    argument,
    command,
    flag,
    json_option,
    offer_registrations,
    offer_studies,
    option,
    require_option,
    trust_option,
)
from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError, did_you_mean
from toolkit.line_ends import CAUSE
from toolkit.places import find_home
from toolkit.registrations import verify as verify_registration
from toolkit.rooms import laboratory
from toolkit.structs import Document, Verified, about, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolkit.places import Home
    from toolkit.prereg import verification
    from toolkit.prereg.token.verdict import TokenVerdict
    from toolkit.prereg.verification import Standing
    from toolkit.registers.study import Study

DEPTHS = ("files", "rows", "registration", "replay")
SAMPLE = 16
MOST = 1_000_000
SEEDS = 2**32  # short, and every reader of JSON holds it
_POLICY = re.compile(r"\d+(?:\.\d+)+", re.ASCII)
# Hashes of documents, and their sizes in bytes; the weak one is there to be told so.
SIZES = {"sha1": 20, "sha256": 32, "sha384": 48, "sha512": 64}
ThingKind = Literal["registration", "study", "token", "export"]
ThingVerdict = Literal["verified", "not_verified", "incomplete", "damaged"]
VERDICTS: dict[int, ThingVerdict] = {4: "damaged", 1: "not_verified", 3: "incomplete", 0: "verified"}
"""What a thing is by its exit code, the worst first."""
CODES = {"failed": 1, "missing": 3, "damaged": 4}
OUTCOMES = {1: "failed", 3: "missing"}
MANIFEST, RULES = "MANIFEST.json", "rules.toml"


class VerifiedStep(Document, frozen=True):
    """One step of what was verified of a thing."""

    step: Annotated[
        str, about("What it checks; of a study `files`, `rows`, `registration`, `draws` or `replay`.")
    ]
    outcome: Annotated[Literal["passed", "failed", "missing", "unproven", "damaged"], about("How it ended.")]
    detail: Annotated[str, about("What was found.")]


class VerifiedThing(Document, frozen=True):
    """What can be said of one thing; the first step that fails is the last of a study."""

    thing: Annotated[str, about("As it was named, or its name here.")]
    kind: Annotated[ThingKind, about("What it is.")]
    verdict: Annotated[ThingVerdict, about("That of its worst step.")]
    steps: Annotated[list[VerifiedStep], about("The steps, in their order.")]


@dataclass
class Target:
    """A thing that is verified, and how far that came."""

    name: str
    kind: ThingKind
    verify: Callable[[Target, Options], Iterator[tuple[str, str, str]]]
    steps: list[VerifiedStep] = field(default_factory=list)
    code: int = 0
    standing: tuple[str, Standing] | None = None
    """Its registration, and what that stands on."""

    def document(self) -> VerifiedThing:
        """Return what is printed of it with `--json`."""
        return VerifiedThing(self.name, self.kind, VERDICTS[self.code], self.steps)


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


@command()
@click.pass_context
def verify(
    context: click.Context,
    *,
    things: tuple[str, ...] = argument(nargs=-1, metavar="[THING]...", shell_complete=offer_studies),
    depth: str = option(
        type=click.Choice(DEPTHS),
        default="registration",
        help="How deep to verify studies; each depth includes the ones before it.",
    ),
    replay: int | None = option(
        type=click.IntRange(1, MOST),
        metavar="N",
        help=f"Replay N random rows of a study; {SAMPLE} with --depth replay.",
    ),
    seed: int | None = option(
        type=click.IntRange(0, 2**63), help="Seed of an earlier replay; default: a new one."
    ),
    document: Path | None = option(type=FILE, help="The document that a token is for."),
    roots: tuple[Path, ...] = option(
        "--root", type=FILE, multiple=True, help="Pinned root certificates for a token."
    ),
    trust_files: tuple[Path, ...] = trust_option,
    least: str | None = require_option,
    as_json: bool = json_option,
) -> None:
    """Verify THINGS (registrations, studies, timestamp tokens, exported statements), or everything here.

    For a study, its files, its rows, what follows from the rows and its registration are checked, and of the
    published one the successes that it lost against the flips that its seeds draw; with --replay, random rows
    are also played again. A failure does not stop the other checks; the exit code is
    that of the worst one.

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
    found = [thing for name in things for thing in _resolve(name, home)] if things else _all_here(home)
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
        end(context, stood, least)
    codes = {thing.code for thing in found}
    context.exit(next(code for code in VERDICTS if code in codes or not code))


def _verify(thing: Target, options: Options) -> None:
    """Verify a thing, and note every step; the first that fails is its last."""
    step = "files"
    try:
        for step, outcome, detail in thing.verify(thing, options):
            if detail:
                thing.steps.append(VerifiedStep(step, outcome, detail))  # type: ignore[arg-type]
                thing.code = _worst(thing.code, CODES.get(outcome, 0))
    except UsageError:
        raise
    except ToolkitError as error:
        outcome = OUTCOMES.get(error.exit_code, "damaged")
        thing.steps.append(VerifiedStep(step, outcome, str(error)))  # type: ignore[arg-type]
        thing.code = _worst(thing.code, CODES[outcome])


def _worst(*codes: int) -> int:
    return next(code for code in VERDICTS if code in codes)


def _resolve(name: str, home: Home) -> list[Target]:
    """Return what a name means: a file, a folder, a registration, a study, or both of these."""
    path = Path(name)
    if path.is_file():
        is_statement = path.suffix == ".json"
        return [Target(name, "export", _statement) if is_statement else Target(name, "token", _token)]
    if path.is_dir() and (path / RULES).is_file():
        return [Target(name, "registration", _registration)]
    found = [Target(name, "registration", _registration)] if name in home.registration_names() else []
    if home.find_study(name) is not None or not found:
        known = {*home.registration_names(), *(home.studies() if home.has_studies else ())}
        if not (found or (path / MANIFEST).is_file() or "@" in name or home.find_study(name) is not None):
            raise UsageError(
                f"there is nothing called {name!r} to be verified",
                expected="a registration, a study, a token, a statement, or a folder with one",
                remedy=did_you_mean(name, known),
            )
        found.append(Target(name, "study", _study))
    return found


def _all_here(home: Home) -> list[Target]:
    from toolkit.prereg.registration import is_draft

    home.say_absent(output.remark)
    frozen = [name for name in home.registration_names() if not is_draft(home.registration_folder(name))]
    found = [Target(name, "registration", _registration) for name in frozen]
    found += [Target(name, "study", _study) for name in (home.studies() if home.has_studies else ())]
    if not found:
        raise IncompleteError("there is nothing here to be verified", where=home.root)
    return found


def _study(thing: Target, options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield the steps of a study down to a depth."""
    from toolkit.verification.steps import STEPS, Checked

    at = Checked(
        cases.open_study(thing.name, options.home),
        None,
        options.say,
        replayed=options.sample,
        seed=options.seed,
    )
    cases.attach_registration(at, options.home, trust_files=options.trust_files)
    if at.case is not None:
        thing.standing = at.case.registration.name, at.case.standing
    last = "draws" if options.depth == "registration" else options.depth
    for step in islice(STEPS, list(STEPS).index(last) + 1):
        yield step, "passed", ""  # an error is this step's
        detail = STEPS[step](at)
        outcome = "passed"
        if step == "registration":
            outcome = {"not_verified": "failed", "incomplete": "missing"}.get(at.verdict, "passed")
        yield step, outcome, detail
    if at.is_published and last in ("draws", "replay"):
        yield "replay", "unproven", laboratory().not_public


def _registration(thing: Target, options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield the steps of a registration."""
    from toolkit.prereg.verification import standing_of

    options.say("registration")
    is_here = thing.name in options.home.registration_names()
    folder = options.home.registration_folder(thing.name) if is_here else Path(thing.name)
    result = verify_registration(folder, None, options.home, trust_files=options.trust_files)
    thing.standing = result.registration, standing_of(result)
    for check in result.checks:
        yield check.name, check.outcome, check.detail
    thing.code = {"verified": 0, "incomplete": 3}.get(result.verdict, 1)


def _token(thing: Target, options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield the one step of a token, which is fifteen checks."""
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


def _statement(thing: Target, options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield the steps of an exported decision: what it names is here, and decided so."""
    from toolkit.exports.in_toto import differences, read_statement

    yield "statement", "passed", ""
    statement = read_statement(Path(thing.name))
    name = statement["predicate"]["study"]["name"]
    yield "statement", "passed", f"a decision on study {name}"
    options.say(f"study {name}")
    case = cases.open_case(
        cases.open_study(name, options.home), options.home, trust_files=options.trust_files
    )
    thing.standing = case.registration.name, case.standing
    for part, differing in differences(statement, case):
        yield part, "failed" if differing else "passed", differing or "as here"


def _print(thing: Target) -> None:
    verdict = VERDICTS[thing.code]
    output.say_line(
        output.bold(thing.name), f" ({thing.kind}): ", output.styled(verdict, verdict.replace("_", " "))
    )
    for step in thing.steps:
        first, *more = step.detail.split("\n")
        output.say_line(f"  {step.step}: ", output.styled(step.outcome), f", {first}")
        for line in more:
            output.say_line(f"    {line}")


class Audited(Document, frozen=True):
    """Random rows of a study, played again: all as registered."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Verified
    rows: Annotated[int, about("Rows that there are to draw from.")]
    sample: Annotated[int, about("Rows that were played again.")]
    seed: Annotated[int, about("Draws the same rows again.")]
    tables: Annotated[dict[str, int], about("Rows that were played again, by table.")]
    derived: Annotated[dict[str, int], about("Rows that were derived again, by table.")]
    runs: Annotated[tuple[str, ...], about("Runs that the rows belong to.")]


@command("verify-prereg")
@click.pass_context
def verify_prereg(
    context: click.Context,
    *,
    registrations: tuple[str, ...] = argument(nargs=-1, shell_complete=offer_registrations),
    named: tuple[str, ...] = option(
        "--study",
        multiple=True,
        metavar=STUDY,
        shell_complete=offer_studies,
        help="Verify the registration that this study names, or carries, against its runs.",
    ),
    trust_files: tuple[Path, ...] = trust_option,
    restatements: tuple[str, ...] = option(
        "--restatement",
        multiple=True,
        metavar="LINK",
        help="Last link of a registration that restates another document; compare the two first.",
    ),
    with_openssl: bool = flag("--openssl", help="Also check each token with OpenSSL, which can veto."),
    least: str | None = require_option,
    as_json: bool = json_option,
) -> None:
    """Verify REGISTRATIONS (every one here if none is named): files, document, tokens, chronology.

    No network is used. Whatever is missing is named, with where to get it and where to put it.

    \b
    Examples:
      toolkit verify-prereg
      toolkit verify-prereg paired-rollouts --json
      toolkit verify-prereg paired-rollouts --openssl
      toolkit verify-prereg --study embedded
      toolkit verify-prereg embedded --require demonstration
    """
    from toolkit.prereg.verification import standing_of

    if registrations and named:
        raise UsageError("name registrations, or the studies that they belong to")
    wanted = _folders(registrations, named)
    results = []
    with output.stepped("verify", len(wanted)) as progress:
        for folder, studies in wanted:
            progress(folder.name)
            results.append(
                verify_registration(
                    folder,
                    studies,
                    trust_files=trust_files,
                    restatements=restatements,
                    with_openssl=with_openssl,
                    all_belong=bool(named),
                )
            )
    if as_json:
        output.print_json(results)
    else:
        for result in results:
            print_verification(result)
    if least:
        end(context, {result.registration: standing_of(result) for result in results}, least)
    verdicts = {result.verdict for result in results}
    context.exit(1 if "not_verified" in verdicts else 3 if "incomplete" in verdicts else 0)


def _folders(registrations: Sequence[str], named: Sequence[str]) -> list[tuple[Path, Sequence[Study]]]:
    """Return the folders to verify, each with the studies whose runs have to come after it."""
    from toolkit.prereg.registration import is_draft

    home = find_home()
    if named:
        studies = [cases.open_study(name, home) for name in dict.fromkeys(named)]
        return [(cases.registration_of(study, home), [study]) for study in studies]
    every = [home.registration_folder(name) for name in registrations or home.registration_names()]
    # A draft claims nothing yet; whoever names it, or has nothing else, is told so.
    folders = every if registrations else [folder for folder in every if not is_draft(folder)] or every
    home.say_absent(output.remark)
    here = cases.studies_here(home)
    return [(folder, here) for folder in folders]


def print_verification(result: verification.Verification) -> None:
    """Print a verification, step by step; plain lines, because tables take longer to load than it takes."""
    from toolkit.prereg.verification import TOKENS

    marks = output.standing_mark(result.standing)
    if result.is_restated and result.verdict == "verified":
        marks += "   THE DOCUMENT, NOT ITS RESTATEMENT HERE"
    output.say_line(output.bold(result.registration), ": ", output.styled(result.verdict), marks)
    for check in result.checks:
        output.say_line(f"  {check.step}. {check.name}: ", output.styled(check.outcome))
        # That step's detail is a list of facts, read more easily line by line.
        for line in check.detail.replace("; ", "\n" if check.step == TOKENS else "; ").split("\n"):
            output.say_line(f"     {line}")
    output.say_line(f"  {result.promise}")


@command("verify-token")
@click.pass_context
def verify_token(
    context: click.Context,
    *,
    token: Path = argument(type=FILE),
    document: Path | None = option(type=FILE, help="The document that the token is for."),
    digest: str | None = option(
        metavar="ALG:HEX", help="The document's hash, if you do not have the document."
    ),
    roots: tuple[Path, ...] = option(
        "--root", type=FILE, multiple=True, required=True, help="Pinned root certificates, which are trusted."
    ),
    untrusted: tuple[Path, ...] = option(type=FILE, multiple=True, help="Intermediate certificates."),
    signer: Path | None = option(type=FILE, help="The signing certificate, if the token does not embed it."),
    request: Path | None = option(
        type=FILE, help="The request that the token answers: nonce and imprint must match."
    ),
    lists: tuple[Path, ...] = option("--crl", type=FILE, multiple=True, help="Archived revocation lists."),
    policies: tuple[str, ...] = option(
        "--policy", multiple=True, metavar="OID", help="Accept these policies only."
    ),
    at: str | None = option(metavar="ISO8601", help="Judge at this time instead of now."),
    with_openssl: bool = flag("--openssl", help="Also check with OpenSSL, which can veto but not override."),
    as_json: bool = json_option,
) -> None:
    """Verify TOKEN, a TimeStampResp or a bare token, offline, in fifteen checks.

    It stops at the first check that fails, and names it. Certificates and revocation lists may be PEM (one or
    several) or DER. Certificates are judged at the token's own time, so a token outlives them.

    \b
    Examples:
      toolkit verify-token token.tsr --document protocol.md --root root.pem
      toolkit verify-token token.tsr --document protocol.md --root root.pem \\
        --crl issuer.crl --openssl
      toolkit verify-token token.tst --document protocol.md --root root.pem --json
    """
    from toolkit.files import read_bytes, read_up_to
    from toolkit.prereg import evidence
    from toolkit.prereg.evidence import CERTIFICATE, REVOCATION_LIST, read_blocks
    from toolkit.prereg.token.binding import read_request
    from toolkit.prereg.token.certificate import read_certificate
    from toolkit.prereg.token.der import MAX_BYTES
    from toolkit.prereg.token.verify import Material
    from toolkit.prereg.token.verify import verify_token as verify

    if (document is None) == (digest is None):
        raise UsageError("one of --document and --digest is needed, and not both")
    for policy in policies:
        if not _POLICY.fullmatch(policy):
            raise UsageError("a policy is an object identifier, as in 1.2.3.4.1", found=policy)

    def certificates(path: Path) -> tuple[bytes, ...]:
        return checked(path, read_blocks(path, CERTIFICATE), read_certificate)

    archived = certificates(signer) if signer else ()
    material = Material(
        document=read_bytes(document) if document else None,
        digest=_digest(digest) if digest else None,
        roots=tuple(der for path in roots for der in certificates(path)),
        untrusted=(*(der for path in untrusted for der in certificates(path)), *archived[1:]),
        signer=archived[0] if archived else None,
        request=checked(request, (read_bytes(request),), read_request)[0] if request else None,
        crls=tuple(der for path in lists for der in read_blocks(path, REVOCATION_LIST)),
        policies=policies,
    )
    raw = read_up_to(token, MAX_BYTES + 1)
    verdict = verify(raw, material, _moment(at))
    if verdict.verdict != "verified" and material.document and b"\r\n" in material.document:
        again = replace(material, document=material.document.replace(b"\r\n", b"\n"))
        if verify(raw, again, _moment(at)).verdict == "verified":
            verdict = replace(verdict, notes=(*verdict.notes, f"{document}: {CAUSE}"))
    if with_openssl:
        verdict = evidence.second_opinion(raw, material, verdict)
    if as_json:
        output.print_json(evidence.JudgedToken(verdict))
    else:
        _print_token(token, verdict)
    context.exit({"verified": 0, "not_verified": 1}.get(verdict.verdict, 3))


def checked(path: Path, blocks: tuple[bytes, ...], read: Callable[[bytes], object]) -> tuple[bytes, ...]:
    """Return blocks of a file that a reader understands."""
    from toolkit.prereg.token.verdict import Refused

    try:
        for block in blocks:
            read(block)
    except (Refused, ValueError, TypeError, KeyError) as error:
        raise DamagedError(f"{path.name} is not what it has to be", found=error, where=path) from None
    return blocks


def _print_token(path: Path, verdict: TokenVerdict) -> None:
    output.say_line(output.bold(path.name), ": ", output.styled(verdict.verdict))
    if verdict.failed_check:
        step = f"check {verdict.failed_step}, " if verdict.failed_step else ""
        output.say_line(f"  {step}{verdict.failed_check}: {verdict.message}")
    accuracy = "not stated" if verdict.accuracy_seconds is None else f"{verdict.accuracy_seconds:g} s"
    facts = (
        ("time", verdict.gen_time and f"{verdict.gen_time:%Y-%m-%dT%H:%M:%SZ} ± {accuracy}"),
        ("serial", verdict.serial),
        ("policy", verdict.policy),
        ("imprint", verdict.imprint and f"{verdict.imprint_algorithm} {verdict.imprint}"),
        ("signer", verdict.signer),
        ("signature", verdict.signature_algorithm),
        ("root", verdict.root_sha256 and f"{verdict.root}, SHA-256 {verdict.root_sha256}"),
        ("revocation", verdict.revocation),
        *(("note", note) for note in verdict.notes),
    )
    if verdict.verdict != "verified" and verdict.gen_time:
        output.say_line("  it claims, and nothing of it is verified:")
    for name, fact in facts:
        if fact:
            output.say_line(f"  {name:<12}{fact}")
    if verdict.verdict == "verified":
        output.say_line(
            "  Proven, by the clock of that signer: bytes with this imprint existed no later than "
            f"{verdict.gen_time:%Y-%m-%dT%H:%M:%SZ} ± {accuracy}. Not proven: who wrote them."
        )


def _digest(text: str) -> tuple[str, bytes]:
    algorithm, _, value = text.partition(":")
    name = algorithm.lower().replace("-", "")
    try:
        digest = bytes.fromhex(value)
    except ValueError:
        digest = b""
    if name not in SIZES or len(digest) != SIZES[name]:
        raise UsageError(
            "a digest is written ALG:HEX, as in sha256:6dc7...",
            expected=", ".join(f"{one}: {2 * size} digits" for one, size in SIZES.items()),
            found=text,
        )
    return name, digest


def _moment(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError("a time is written as in 2026-11-20T00:00:00Z", found=text) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


@command()
def audit(
    *,
    study: str | None = option(
        metavar=STUDY,
        shell_complete=offer_studies,
        help="Study to audit; default: the one that ships its rows.",
    ),
    sample: int = option(type=click.IntRange(1, MOST), default=SAMPLE, help="How many rows to play again."),
    seed: int | None = option(
        type=click.IntRange(0, 2**63),
        help="Seed of an earlier audit, to draw the same rows; default: a new one.",
    ),
    as_json: bool = json_option,
) -> None:
    """Play random rows of a study's registers again.

    The first that comes out otherwise fails the audit.

    Episodes and luck-share tables are played by their run's checkpoint. For a training group, training goes
    on from the checkpoint before it, and every group on the way has to come out as registered; where a study
    keeps no checkpoints, a run is trained from its start. The probe's rollouts are played
    and scored again. As many rows of what follows, such as counts, luck shares and the probe's figures, are
    derived again. Which rows are drawn nobody can foresee; the seed that is printed draws them again.

    \b
    Examples:
      toolkit registers audit --study embedded --sample 4
      toolkit registers audit --study embedded --sample 2 --seed 7 --json
    """
    opened = cases.open_study(study or _with_rows())
    laboratory().check_playable(opened)
    case = cases.open_case(opened)
    seed = fresh_seed() if seed is None else seed
    with output.counted("audit") as (watch, _):
        done = laboratory().audit(
            opened,
            case.registration,
            sample,
            seed,
            lambda played, run: watch(played, sample, run),
            registers=case.engine.registers,
        )
    count, derived = sum(done.sampled.values()), sum(done.derived.values())
    drawn, followed = (
        ", ".join(f"{n} of {table}" for table, n in tables.items()) for tables in (done.sampled, done.derived)
    )
    document = Audited(
        opened.name, "verified", done.rows, count, seed, done.sampled, done.derived, tuple(done.runs)
    )
    output.tell(
        document,
        f"{opened.name}: {count} of {done.rows} rows played again, all as registered ({drawn})",
        f"  {derived} rows that follow derived again, all as registered ({followed})",
        f"  drawn with --seed {seed}",
        as_json=as_json,
    )


def fresh_seed() -> int:
    """Return a seed that who made the rows could not foresee: a forger might have spared what it draws."""
    return secrets.randbelow(SEEDS)


def _with_rows() -> str:
    home = find_home()
    names = [name for name in home.studies() if laboratory().is_playable(cases.open_study(name, home))]
    if len(names) != 1:
        home.say_absent(output.remark)
        raise UsageError(
            "name the study to audit", expected=", ".join(names) or "a study that ships its rows"
        )
    return names[0]
