"""`toolkit reproduce`: verify, play a sample again, decide, render, and say what came of it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import click

from toolkit import registrations
from toolkit.cases import PUBLISHED, load_cases, open_study, registered_by
from toolkit.cli import output
from toolkit.cli.decide import end, print_decisions
from toolkit.cli.options import FILE, command, flag, json_option, option, require_option, trust_option
from toolkit.cli.verify import fresh_seed
from toolkit.decisions.decision import Decision
from toolkit.errors import ToolkitError
from toolkit.places import find_home
from toolkit.prereg.verification import Verification
from toolkit.rooms import laboratory, site
from toolkit.structs import UNSET, Document, UnsetType, Verified, about

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from toolkit.cli.output import Say
    from toolkit.decisions.case import Case
    from toolkit.decisions.decision import Decision
    from toolkit.places import Home
    from toolkit.prereg.verification import Standing, Verification
    from toolkit.registers.study import Study
    from toolkit.rooms import Audited, Built

SAMPLE = 8


@command()
@click.pass_context
def reproduce(
    context: click.Context,
    *,
    folder: Path | None = option("--site", type=FILE, help="Folder of the site; default: site/."),
    card: str | None = option(metavar="STUDY", help="Only rebuild the card of STUDY."),
    published: bool = flag(help="Only rebuild the published study."),
    check: bool = flag(help="With --card or --published: compare, and write nothing."),
    least: str | None = require_option,
    trust_files: tuple[Path, ...] = trust_option,
    as_json: bool = json_option,
) -> None:
    """Verify registrations and registers, replay a sample of rows, decide every rule, rebuild the site.

    The sample is random; the seed that is printed draws it again. `toolkit study run embedded --check`
    replays every row. If a registration does not verify, its verdicts are marked so and the exit code is 1.

    \b
    Examples:
      toolkit reproduce
      toolkit reproduce --json
      toolkit reproduce --site /tmp/site
      toolkit reproduce --card coupled --check
      toolkit reproduce --published --check
    """
    if card or published:
        from toolkit.cli.registers import build
        from toolkit.cli.registers import card as make_card

        if card:
            context.invoke(make_card, study=card, check=check, as_json=as_json)
        else:
            wanted = {"study": "published", "source": None, "out": None, "check": check, "as_json": as_json}
            context.invoke(build, **wanted)
        return
    home = find_home()
    target = folder or home.site
    lack = site().lack(target)
    if lack and folder:
        raise lack
    say: Say = (lambda _: None) if as_json else _announce
    cases, rows = _verified(home, trust_files, say)
    verifications = _registered(home, cases, trust_files, say)
    seed = fresh_seed()
    audits, unplayed = _played_again([case.study for case in cases], home, seed, say)
    decisions = _decided(cases, say, quiet=as_json)
    built: Built | ToolkitError | None = lack
    if built is None:
        with output.steps("reproduce") as progress:
            progress("the site")
            built = site().build(home, target, verifications, cases, progress)
    done = _Reproduced(rows, verifications, seed, audits, unplayed, decisions, built)
    if as_json:
        output.print_json(done.document())
    else:
        say(output.bold("What was reproduced"))
        for label, text in done.lines().items():
            say(f"  {label:<10}  {text}")
    end(context, done.standings, least)


class ReproducedRegisters(Document, frozen=True):
    """Registers that were verified."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Verified
    rows: Annotated[int, about("How many rows.")]


class ReproducedAudit(Document, frozen=True):
    """Random rows that were played again, or why they could not be."""

    study: Annotated[str, about("Name of the study.")]
    verdict: Annotated[Literal["verified", "incomplete"], about("`incomplete`: something is missing.")]
    sample: Annotated[int | UnsetType, about("Rows that were played again.")] = UNSET
    seed: Annotated[int | UnsetType, about("Draws the same rows again.")] = UNSET
    lacks: Annotated[str | UnsetType, about("What is missing.")] = UNSET


class WrittenSite(Document, frozen=True):
    """The site that was written."""

    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[int, about("How many.")]
    changed: Annotated[tuple[str, ...], about("Files that have other bytes than before.")]


class Reproduction(Document, frozen=True):
    """Everything verified, decided and rendered."""

    registers: list[ReproducedRegisters]
    audits: list[ReproducedAudit]
    registrations: Sequence[Verification]
    decisions: Sequence[Decision]
    site: Annotated[WrittenSite | None, about("Null: its packages are not installed.")]


@dataclass(frozen=True)
class _Reproduced:
    """What was reproduced."""

    rows: Mapping[str, int]  # of every study
    verifications: Sequence[Verification]  # of every frozen registration
    seed: int  # what rows were drawn by
    audits: Mapping[str, Audited]  # of every study whose rows were played again
    unplayed: Mapping[str, ToolkitError]  # why those of others were not
    decisions: Sequence[Decision]  # on every rule
    site: Built | ToolkitError  # what was written; why nothing was

    @property
    def standings(self) -> dict[str, Standing]:
        """What registrations stand on."""
        from toolkit.prereg.verification import standing_of

        return {v.registration: standing_of(v) for v in self.verifications}

    def document(self) -> Reproduction:
        """Return what was reproduced as it is printed with `--json`."""
        audits = [
            ReproducedAudit(name, "verified", sum(done.sampled.values()), self.seed)
            for name, done in self.audits.items()
        ]
        audits += [
            ReproducedAudit(name, "incomplete", lacks=str(what.problem))
            for name, what in self.unplayed.items()
        ]
        built = self.site
        return Reproduction(
            [ReproducedRegisters(name, "verified", n) for name, n in self.rows.items()],
            audits,
            self.verifications,
            self.decisions,
            None
            if isinstance(built, ToolkitError)
            else WrittenSite(str(built.folder), len(built.files), built.changed),
        )

    def lines(self) -> dict[str, str]:
        """Return what was reproduced in five lines, by what each is about."""
        played = sum(sum(done.sampled.values()) for done in self.audits.values())
        left = f"; not those of {', '.join(self.unplayed)}" if self.unplayed else ""
        paper = [made for made in self.decisions if made.study == PUBLISHED]
        studies = len({made.study for made in self.decisions})
        again = f"{played} random rows of {len(self.audits)} studies came out as recorded (seed {self.seed})"
        return {
            "rows": f"{sum(self.rows.values()):,} rows of {', '.join(self.rows)} are those of their "
            "manifests, and follow from each other",
            "registered": _standings_text(self.standings),
            "played": (again if self.audits else "nothing: no study here has rows to play again") + left,
            "decided": f"{len(self.decisions)} rules of {studies} {'study' if studies == 1 else 'studies'}"
            + (f"; the paper's {_counted(paper)}" if paper else ""),
            "site": _site_text(self.site),
        }


def _announce(text: str) -> None:
    """Say what begins, or what is done, at once."""
    output.say_line(text)
    sys.stdout.flush()


@contextmanager
def _doing(what: str, at: int = 0, total: int = 1) -> Iterator[None]:
    """Show on a terminal what is being done, and how much of its stage is behind."""
    with output.counted("reproduce") as (watch, _):
        watch(at, total, what)
        yield


def _verified(home: Home, trust_files: tuple[Path, ...], say: Say) -> tuple[list[Case], dict[str, int]]:
    """Return what decides each study, and the rows of every study here, all of them verified."""
    from toolkit.verification.steps import Checked, check_study

    home.say_absent(output.remark)
    with _doing("opening studies"):
        cases = load_cases((), home, trust_files=trust_files)
    say(output.bold("Registers: files, rows, and what follows from rows"))
    decided = {case.study.name: case for case in cases}
    others = [open_study(name, home) for name in home.studies() if name not in decided]
    studies = [*(case.study for case in cases), *others]
    rows = {}
    for at, study in enumerate(studies):
        with _doing(f"registers of {study.name}", at, len(studies)):
            checked = check_study(Checked(study, decided.get(study.name)))
        rows[study.name] = sum(checked.rows.values())
        say(f"  {study.name}: {rows[study.name]:,} rows")
    return cases, rows


def _registered(
    home: Home, cases: Sequence[Case], trust_files: tuple[Path, ...], say: Say
) -> list[Verification]:
    from toolkit.prereg.verification import standing_of

    say(output.bold("Registrations: documents, tokens, chronology"))
    with _doing("registrations"):
        verifications = registrations.verify_frozen(home, [case.study for case in cases], trust_files)
    for verification in verifications:
        say(f"  {verification.registration}: {standing_of(verification)}")
    return verifications


def _played_again(
    studies: Sequence[Study], home: Home, seed: int, say: Say
) -> tuple[dict[str, Audited], dict[str, ToolkitError]]:
    """Play random rows of every study again that has any; return also why others were not."""
    say(output.bold("Randomly drawn rows, played again"))
    audits, unplayed = {}, {}
    playable = [study for study in studies if laboratory().is_playable(study)]
    others = [study.name for study in studies if not laboratory().is_playable(study)]
    if others:
        say(f"  {', '.join(others)}: no rows that can be played without a language model")
    for at, study in enumerate(playable):
        lack = laboratory().lack(study)
        if lack:
            unplayed[study.name] = lack
            say(f"  {study.name}: not done: {lack.problem}; {lack.remedy}")
            continue
        with _doing(f"rows of {study.name}", at, len(playable)):
            registration = registered_by(study, home)
            done = laboratory().audit(study, registration, SAMPLE, seed, lambda *_: None)
            audits[study.name] = done
        say(
            f"  {study.name}: {sum(done.sampled.values())} rows, all as registered; again: "
            f"`toolkit registers audit --study {study.name} --sample {SAMPLE} --seed {seed}`"
        )
    return audits, unplayed


def _decided(cases: Sequence[Case], say: Say, *, quiet: bool) -> list[Decision]:
    say(output.bold("Verdicts"))
    decisions: list[Decision] = []
    for at, case in enumerate(cases):
        with _doing(f"verdicts of {case.study.name}", at, len(cases)):
            made = case.decide_all()
        decisions += made
        if case.study.name != PUBLISHED:
            say(f"  {case.study.name}: {_counted(made)}")
        elif not quiet:
            print_decisions(made)
    return decisions


def _standings_text(standings: Mapping[str, Standing]) -> str:
    names: dict[str, list[str]] = {}
    for name, stands in standings.items():
        names.setdefault(stands.name, []).append(name)
    return "; ".join(f"{stands}: {', '.join(of)}" for stands, of in names.items()) or "nothing is frozen here"


def _counted(decisions: Sequence[Decision]) -> str:
    verdicts = Counter(made.verdict.replace("_", " ") for made in decisions)
    said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    return f"{len(decisions)} rules: {said}"


def _site_text(site: Built | ToolkitError) -> str:
    if isinstance(site, ToolkitError):
        return f"not built: {site.problem}; {site.remedy}"
    changes = f"{len(site.changed)} changed" if site.changed else "unchanged"
    return f"{len(site.files)} files, {changes}: {site.folder / 'index.html'}"
