"""`toolkit freeze`: say it before it runs; `toolkit amend`, `toolkit deviate`: what changed since."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import click

from toolkit import cases, registrations
from toolkit.cli import output
from toolkit.cli.options import (
    FILE,
    FOLDER,
    argument,
    command,
    flag,
    json_option,
    offer_registrations,
    offer_studies,
    option,
    together,
    trust_option,
)
from toolkit.errors import UsageError
from toolkit.files import read_text
from toolkit.places import find_home
from toolkit.prereg import adoption
from toolkit.prereg.adoption import Evidence, Folder, Pools
from toolkit.prereg.evidence import Judged
from toolkit.prereg.record import FrozenStanding
from toolkit.prereg.verification import Check
from toolkit.registers.published import SOURCES, STUDY, Comparison, compare_runs, read_source
from toolkit.rooms import Regenerated, laboratory
from toolkit.structs import Document, about

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.places import Home
    from toolkit.prereg import authority, record
    from toolkit.prereg.registration import Registration
    from toolkit.registers.study import Study

TEMPLATES = Path(__file__).parent / "templates"
Outcome = Literal["adopted", "unchanged", "dry run"]


class TemplateDocument(Document, frozen=True):
    """A file to be filled in: with --template."""

    template: Annotated[str, about("Its text, in TOML.")]


class DryFreezeDocument(Document, frozen=True):
    """A draft that can be frozen: with --dry-run."""

    registration: Annotated[str, about("Name of the registration.")]
    files: Annotated[list[str], about("Names of the files that would be frozen.")]
    commit: Annotated[str | None, about("Null where the folder is under no version control.")]
    ready: Annotated[Literal[True], about("A draft that cannot be frozen gives an error.")] = True


class FreezeDocument(Document, frozen=True):
    """A registration that was frozen."""

    registration: Annotated[str, about("Name of the registration.")]
    sha256: Annotated[str, about("Digest of the list of frozen files.")]
    standing: Annotated[FrozenStanding, about("`demonstration`: its authorities were made for the occasion.")]
    commit: Annotated[str | None, about("Null where the folder is under no version control.")]
    files: Annotated[tuple[str, ...], about("Names of the frozen files.")]
    authorities: tuple[Judged, ...]


class AdoptDocument(Document, frozen=True):
    """The evidence of a freeze, taken from a checkout of its authors' repository."""

    registration: Annotated[str, about("Name of the registration.")]
    outcome: Annotated[Outcome, about("`unchanged`: exactly this lay there already.")]
    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[list[str], about("Names of the evidence's files.")]
    document_sha256: Annotated[str, about("Of the frozen document.")]
    authorities: tuple[Judged, ...]
    checks: tuple[Check, ...]
    pools: Pools
    figures: Annotated[
        Comparison | None, about("Null where the study was not transcribed from run registers.")
    ]
    tasks: Annotated[Regenerated | None, about("Null likewise.")]


class Asking(NamedTuple):
    """Which authorities are asked, and which are trusted."""

    addresses: tuple[str, ...]
    trust_files: tuple[Path, ...]
    roots: tuple[Path, ...]
    timeout_s: float


asking_option = together(
    Asking,
    addresses=option(
        "--authority",
        multiple=True,
        metavar="URL",
        help="Address of an authority, at least two; default: those of trust.toml, or FreeTSA and DigiCert.",
    ),
    trust_files=trust_option,
    roots=option(
        "--root",
        type=FILE,
        multiple=True,
        metavar="PEM",
        help="File with a pinned root certificate that neither the token nor this system has.",
    ),
    timeout_s=option(
        "--timeout",
        type=click.FloatRange(0.1, 600),
        default=30.0,
        help="Time limit for one exchange with an authority, in seconds.",
    ),
)


@command()
def freeze(
    *,
    registration: str = argument(shell_complete=offer_registrations),
    template: bool = flag(help="Print a rules.toml to fill in."),
    demonstration: bool = flag(
        help="Use two throw-away authorities, whose keys are destroyed. Proves nothing to others."
    ),
    dry_run: bool = flag(help="Check everything; contact no authority and write nothing."),
    asking: Asking = asking_option,
    as_json: bool = json_option,
) -> None:
    """Freeze REGISTRATION, a folder with rules.toml and protocol.md, before its runs.

    The rules are checked first: each has to be able to pass and to miss over the declared ranges, and is
    tried on rows such as the registered runs would leave. Then the files are hashed, and the list of hashes
    is timestamped by at least two authorities. Nothing is frozen until every token has been verified; a
    freeze that failed can be continued with the same command.

    \b
    Examples:
      toolkit freeze my-study --template > rules.toml
      toolkit freeze my-study --dry-run
      toolkit freeze my-study
      toolkit freeze my-study --authority https://freetsa.org/tsr \\
        --authority http://time.certum.pl
      toolkit freeze my-study --demonstration
    """
    from toolkit.prereg import git

    if template:
        _print_template("rules", as_json=as_json, name=registration)
        return
    if dry_run:
        draft = registrations.check_draft(registration)
        _print_dry_run(draft.name, sorted(draft.contents), draft.commit, as_json=as_json)
        return
    frozen = registrations.freeze(
        registration,
        demonstration=demonstration,
        authorities=asking.addresses,
        trust_files=asking.trust_files,
        roots=asking.roots,
        timeout_s=asking.timeout_s,
        say=output.remark,
    )
    if as_json:
        named = frozen.registration, frozen.sha256, frozen.standing
        output.print_json(FreezeDocument(*named, frozen.commit or None, frozen.files, frozen.tokens))
        return
    output.say_line(output.bold(frozen.registration), ": frozen", output.standing_mark(frozen.standing))
    output.say_line(f"  {len(frozen.files)} files: {', '.join(frozen.files)}")
    output.say_line(f"  digest {frozen.sha256}")
    print_tokens(frozen.tokens)
    trusting = "".join(f" --trust {path}" for path in asking.trust_files)
    output.say_line("  commit the folder, and publish the digest")
    output.print_unbroken(f"  toolkit verify-prereg {frozen.registration}{trusting}")
    for name in git.ignored(find_home().registration_folder(registration)):
        output.say_line(f"  NOT COMMITTED with the folder, because git ignores it: {name}")


def _print_template(kind: str, *, as_json: bool, name: str = "") -> None:
    """Print a file to be filled in; what is left as it is, is refused."""
    text = read_text(TEMPLATES / f"{kind}.toml")
    text = text.replace("{name}", name).replace("{today}", str(datetime.now(UTC).date()))
    if as_json:
        output.print_json(TemplateDocument(text))
    else:
        click.echo(text, nl=False)


def _print_dry_run(name: str, files: Sequence[str], commit: str, *, as_json: bool) -> None:
    output.tell(
        DryFreezeDocument(name, list(files), commit or None),
        f"{name} can be frozen: {', '.join(files)}",
        "every rule can pass and can miss over the declared ranges, and be decided on the registered runs; "
        "nothing was written",
        *([] if commit else ["the folder is under no version control: no commit will be recorded"]),
        as_json=as_json,
    )


@command()
def amend(
    *,
    registration: str | None = argument(required=False, shell_complete=offer_registrations),
    file: Path | None = argument(type=FILE, required=False),
    template: bool = flag(help="Print an amendment to fill in."),
    after_runs: bool = flag(
        help="Record that it was made after runs: it is not binding, and its results are exploratory."
    ),
    asking: Asking = asking_option,
    as_json: bool = json_option,
) -> None:
    """Add FILE to REGISTRATION: an amendment, which changes rules before the data that it concerns.

    It names the rules that it replaces, restates or adds, the reason, and what had been seen by then, and is
    frozen like the registration. Once runs have been launched it changes no verdict: the earlier rules bind,
    and its results are shown as exploratory. It has to say so itself; --after-runs writes that into it.

    \b
    Examples:
      toolkit amend --template > A2.toml
      toolkit amend my-study A2.toml
      toolkit amend my-study A2.toml --after-runs
    """
    if template:
        _print_template("amendment", as_json=as_json)
    else:
        _add("amendment", registration, file, asking, after_runs=after_runs, as_json=as_json)


@command()
def deviate(
    *,
    registration: str | None = argument(required=False, shell_complete=offer_registrations),
    file: Path | None = argument(type=FILE, required=False),
    template: bool = flag(help="Print a deviation to fill in."),
    asking: Asking = asking_option,
    as_json: bool = json_option,
) -> None:
    """Add FILE to REGISTRATION: a deviation or disclosure, which records an event and changes no rule.

    \b
    Examples:
      toolkit deviate --template > D1.toml
      toolkit deviate my-study D1.toml
    """
    if template:
        _print_template("deviation", as_json=as_json)
    else:
        _add("deviation", registration, file, asking, as_json=as_json)


def _add(
    kind: str,
    registration: str | None,
    file: Path | None,
    asking: Asking,
    *,
    after_runs: bool = False,
    as_json: bool,
) -> None:
    from toolkit.prereg.freeze import add, read_addition
    from toolkit.prereg.record import Amendment, known_authorities
    from toolkit.prereg.registration import load_registration
    from toolkit.verification import decidable

    if registration is None or file is None:
        raise UsageError(
            f"a registration and the file of the {kind} are needed", remedy="--template prints one"
        )
    home = find_home()
    loaded = load_registration(home.registration_folder(registration))
    entry, content = read_addition(loaded, file, after_runs=after_runs)
    if type(entry).__name__.lower() != kind:
        raise UsageError(f"{file.name} is no {kind}", found=type(entry).__name__.lower(), where=file)
    if isinstance(entry, Amendment) and not entry.after_runs:
        _refuse_late(home, loaded, entry)
    known = known_authorities(*asking.trust_files)
    added = add(
        loaded,
        entry,
        content,
        _sources(loaded, known, asking),
        known,
        check=lambda fresh: decidable.check_entry(fresh, entry),
        say=output.remark,
    )
    if as_json:
        output.print_json(added)
        return
    mark = output.standing_mark(loaded.record.standing)
    output.say_line(output.bold(added.registration), f": {kind} {added.id} recorded in {added.file}{mark}")
    output.say_line(f"  link {added.link}")
    print_tokens(added.authorities)
    output.say_line("  commit the folder")
    if added.exploratory is True:
        output.say_line(f"  MADE AFTER RUNS: it binds nothing; {_LATE}")
    if not added.authorities:
        output.say_line("  NOT TIMESTAMPED: this registration restates one that was frozen elsewhere")


_LATE = "the verdicts on the rules before it stand, and what it says is shown beside them as exploratory"


def _refuse_late(home: Home, registration: Registration, amendment: record.Amendment) -> None:
    """Refuse an amendment that comes after runs, and does not say so."""
    from toolkit.verification.registered import is_on_new_data, launched_under

    studies = cases.studies_here(home)
    launched = launched_under(registration, studies, home.runs / registration.name)
    if launched and not is_on_new_data(registration, amendment, studies):
        raise UsageError(
            f"runs have been launched under {registration.name!r}: amendment {amendment.id} would come after "
            "them, and bind nothing",
            expected="an amendment before the runs, or one that says that it came after them",
            found="; ".join(
                f"{where}: {count} runs that enter decisions" for where, count in launched.items()
            ),
            remedy=f"give --after-runs, and the file says so: {_LATE}",
        )


def _sources(
    registration: Registration, known: Sequence[record.Trusted], asking: Asking
) -> tuple[authority.Source, ...]:
    from toolkit.prereg.authority import online
    from toolkit.prereg.demonstration import demonstrated
    from toolkit.prereg.record import DEMONSTRATION, EVIDENCE

    if registration.record.is_restated:
        return ()
    if registration.record.standing == DEMONSTRATION:
        return demonstrated()
    roots = (*asking.roots, *sorted((registration.folder / EVIDENCE).glob("*.pem")))
    return online(asking.addresses, registration.trust_in(), known, roots, asking.timeout_s)


def print_tokens(tokens: Sequence[Judged]) -> None:
    """Print one line a token."""
    for token in tokens:
        output.say_line(
            f"  {token.authority.name}: {token.verdict.gen_time:%Y-%m-%dT%H:%M:%SZ}, "
            f"serial {token.verdict.serial}"
        )


MOST = 5
TRIED: Final = "dry run"


@command()
@click.pass_context
def adopt(
    context: click.Context,
    *,
    study: str = argument(shell_complete=offer_studies),
    checkout: Path = argument(type=FOLDER),
    dry_run: bool = flag(help="Verify and compare everything, and write nothing."),
    trust_files: tuple[Path, ...] = trust_option,
    as_json: bool = json_option,
) -> None:
    """Copy the evidence of STUDY's freeze from CHECKOUT, a checkout of its authors' repository.

    The frozen document, both tokens, their request and certificates are verified and copied to where
    `verify-prereg` and `explain` read them, all or none. The hashes of the task pools and every figure in the
    authors' run registers are compared with those of STUDY. Every task of published is generated anew, with
    the words in four files of the authors' code, which are parsed, never run, and copied too. Whatever the
    checkout lacks is named. No network is used, and nothing outside CHECKOUT is read.

    The exit code is 1 if something differs, and 3 if part of the evidence is missing.

    \b
    Examples:
      toolkit adopt published ../paired-rollouts
      toolkit adopt published ../paired-rollouts --dry-run --json
      toolkit verify-prereg paired-rollouts
    """
    from toolkit.prereg.record import known_authorities, known_restatements
    from toolkit.prereg.registration import load_registration
    from toolkit.prereg.verification import Reader

    home = find_home()
    if home.is_shipped:
        raise UsageError(
            "the registrations that came with the package are not written",
            where=home.registrations,
            remedy="change into a checkout of this project, or set TOOLKIT_HOME to one",
        )
    opened, folder = cases.open_study(study, home), Folder(checkout)
    registration = load_registration(home.registration_folder(opened.manifest.registration.name))
    reader = Reader(known_authorities(*trust_files), datetime.now(UTC), restatements=known_restatements())
    with output.stepped(f"adopt {study}", 6) as progress:
        found = adoption.examine(registration, folder, reader, progress)
        progress("comparing the figures of the runs")
        figures = _compared(opened, folder, found.runs)
        tasks = None
        if study == STUDY and registration.record.checkout:
            tasks, words = laboratory().regenerate(folder, registration.record.checkout.pools, progress)
            found = replace(found, contents={**found.contents, **words})
        outcome: Outcome = TRIED if dry_run else adoption.put_in_place(found)
    if as_json:
        output.print_json(_adopt_document(found, outcome, figures, tasks))
    else:
        _show_adopted(found, outcome, figures, tasks)
    context.exit(any(each and each.differences for each in (found.pools, figures, tasks)))


def _compared(study: Study, checkout: Folder, runs: str) -> Comparison | None:
    """Compare the figures of a study that was transcribed from run registers; None of any other study."""
    if study.name != STUDY:
        return None
    for name in SOURCES:
        study.prove(f"source/{name}.csv")
    return compare_runs(read_source(study.folder / "source"), checkout, runs)


def _adopt_document(
    done: Evidence, outcome: Outcome, figures: Comparison | None, tasks: Regenerated | None
) -> AdoptDocument:
    return AdoptDocument(
        registration=done.verification.registration,
        outcome=outcome,
        folder=str(done.folder),
        files=sorted(done.contents),
        document_sha256=done.verification.document_sha256,
        authorities=tuple(Judged(t.authority, t.place, t.verdict) for t in done.verification.authorities),
        checks=done.checks,
        pools=done.pools,
        figures=figures,
        tasks=tasks,
    )


def _show_adopted(
    done: Evidence, outcome: Outcome, figures: Comparison | None, tasks: Regenerated | None
) -> None:
    what = {"adopted": "in its place", "unchanged": "in its place already", TRIED: "not written"}
    pools = done.pools
    output.say_line(f"{done.verification.registration}: the evidence verifies and is {what[outcome]}")
    output.say_line(f"  {done.folder}: {', '.join(sorted(done.contents))}")
    for check in done.checks:
        output.say_line(f"  {check.step}. {check.name}: ", output.styled(check.outcome))
    _say_compared(f"hashes of task pools compared: {pools.compared}", pools.differences, pools.not_compared)
    if figures is None:
        output.say_line("figures: this study was not transcribed from run registers; none compared")
        return
    _say_compared(
        f"figures compared: {figures.compared}, of {figures.runs} runs",
        [f"{d.figure}: published {d.published}, in the checkout {d.found}" for d in figures.differences],
        figures.not_compared,
    )
    if tasks:
        _say_compared(f"tasks generated anew: {tasks.tasks}", tasks.differences, tasks.not_compared)
    output.say_line(f"Now: toolkit verify-prereg {done.verification.registration}")


def _say_compared(compared: str, differences: Sequence[str], not_compared: Sequence[str]) -> None:
    """Print what was compared, the first differences, and what was not compared."""
    output.say_line(f"{compared}; different: {len(differences)}")
    for what, told in (("DIFFERS", differences), ("not compared", not_compared)):
        for line in told[:MOST]:
            output.say_line(f"  {what}: {line}")
        if len(told) > MOST:
            output.say_line(f"  {what}: {len(told) - MOST} more; --json has them all")
