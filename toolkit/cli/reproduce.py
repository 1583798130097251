"""`toolkit reproduce`: verify, play a sample again, decide, render, and say what came of it."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from toolkit import api
from toolkit.cli import output, standing
from toolkit.cli.audit import fresh_seed
from toolkit.cli.authorities import trust_option
from toolkit.cli.decide import print_decisions
from toolkit.cli.output import FILE, json_option
from toolkit.cli.standing import require_option
from toolkit.cli.verify_prereg import as_document
from toolkit.places import find_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from toolkit.decisions.case import Case
    from toolkit.decisions.decision import Decision
    from toolkit.errors import ToolkitError
    from toolkit.places import Home
    from toolkit.prereg.standing import Standing
    from toolkit.prereg.verification import Verification
    from toolkit.registers.study import Study
    from toolkit.study.check.audit import Audited
    from toolkit.website.build import Built

SAMPLE = 8


@click.command()
@click.option("--site", "folder", type=FILE, help="Folder of the site; site/ if left out.")
@require_option
@trust_option
@json_option
@click.pass_context
def reproduce(
    context: click.Context,
    *,
    folder: Path | None,
    least: str | None,
    trust_files: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Verify registrations and registers, play a sample of rows again, decide everything, rebuild the site.

    Which rows, nobody can foresee: the seed that is printed draws them again. `toolkit study run embedded
    --check` plays every row again. Verdicts under a registration that does not verify are shown as what they
    are, and the command ends with exit code 1.

    \b
    Examples:
      toolkit reproduce
      toolkit reproduce --json
      toolkit reproduce --site /tmp/site
    """
    from toolkit.prereg.standing import standing_of
    from toolkit.website.build import check_place, lacking_packages

    home = find_home()
    target = folder or home.site
    check_place(target)
    lack = lacking_packages()
    if lack and folder:
        raise lack
    say = _Stages(quiet=as_json)
    cases, rows = _verified(home, trust_files, say)
    verifications = _registered(home, trust_files, say)
    seed = fresh_seed()
    audits, unplayed = _played_again([case.study for case in cases], home, seed, say)
    decisions = _decided(cases, say)
    built = None if lack else _built(home, target, verifications, cases)
    standings = {v.registration: standing_of(v) for v in verifications}
    if as_json:
        audited = [
            {"study": name, "verdict": "verified", "sample": sum(done.sampled.values()), "seed": seed}
            for name, done in audits.items()
        ]
        absent = [
            {"study": name, "verdict": "incomplete", "lacks": str(what.problem)}
            for name, what in unplayed.items()
        ]
        output.print_json(
            {
                "registers": [{"study": name, "verdict": "verified", "rows": n} for name, n in rows.items()],
                "audits": audited + absent,
                "registrations": [as_document(verification) for verification in verifications],
                "decisions": [decision.as_dict() for decision in decisions],
                "site": {
                    "folder": str(built.folder),
                    "files": len(built.files),
                    "changed": list(built.changed),
                }
                if built
                else None,
            }
        )
    else:
        say.stage("What was reproduced")
        for label, text in {
            "rows": _rows_text(rows),
            "registered": _registered_text(standings),
            "played": _played_text(audits, unplayed, seed),
            "decided": _decided_text(decisions),
            "site": _site_text(built, lack),
        }.items():
            output.say_line(f"  {label:<10}  {text}")
    standing.end(context, standings, least)


class _Stages:
    """Says what is done as it is done; nothing where a document is printed.

    Args:
        quiet: whether a document is printed.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def stage(self, title: str) -> None:
        """Say what begins."""
        if not self._quiet:
            output.say_line(output.bold(title))

    @staticmethod
    @contextmanager
    def doing(what: str, at: int = 0, total: int = 1) -> Iterator[None]:
        """Show on a terminal what is being done, and how much of its stage is behind."""
        with output.counted("reproduce") as (watch, _):
            watch(at, total, what)
            yield

    def done(self, text: str) -> None:
        """Say what is done."""
        if not self._quiet:
            output.say_line(f"  {text}")
            sys.stdout.flush()

    def show(self, decisions: Sequence[Decision]) -> None:
        """Show verdicts."""
        if not self._quiet:
            print_decisions(decisions)


def _verified(home: Home, trust_files: tuple[Path, ...], say: _Stages) -> tuple[list[Case], dict[str, int]]:
    """Return what decides each study, and the rows of every study here, all of them verified."""
    from toolkit.study.check.whole import check_whole

    say.stage("Registers: files, rows, and what follows from rows")
    with say.doing("opening studies"):
        cases = api.load_cases((), home, trust_files=trust_files)
    decided = {case.study.name: case for case in cases}
    others = [api.open_study(name, home) for name in home.studies() if name not in decided]
    studies = [*(case.study for case in cases), *others]
    rows = {}
    for at, study in enumerate(studies):
        with say.doing(f"registers of {study.name}", at, len(studies)):
            checked = check_whole(study, decided.get(study.name), lambda _: None)
        rows[study.name] = sum(checked.values())
        say.done(f"{study.name}: {rows[study.name]:,} rows")
    return cases, rows


def _registered(home: Home, trust_files: tuple[Path, ...], say: _Stages) -> list[Verification]:
    from toolkit.prereg.standing import standing_of

    say.stage("Registrations: documents, tokens, chronology")
    with say.doing("registrations"):
        verifications = api.verify_frozen(home, trust_files=trust_files)
    for verification in verifications:
        say.done(f"{verification.registration}: {standing_of(verification)}")
    return verifications


def _played_again(
    studies: Sequence[Study], home: Home, seed: int, say: _Stages
) -> tuple[dict[str, Audited], dict[str, ToolkitError]]:
    """Play random rows of every study again that has any; return also why others were not."""
    from toolkit.study.check.audit import audit, is_playable
    from toolkit.worlds.world import missing

    say.stage("Rows, drawn now, played again")
    audits, unplayed = {}, {}
    playable = [study for study in studies if is_playable(study)]
    for at, study in enumerate(playable):
        lack = missing(study)
        if lack:
            unplayed[study.name] = lack
            say.done(f"{study.name}: not done: {lack.problem}; {lack.remedy}")
            continue
        with say.doing(f"rows of {study.name}", at, len(playable)):
            runs = api.registered_runs(study, home)
            probe = api.registered_probe(study, runs)
            done = audits[study.name] = audit(study, SAMPLE, seed, runs, lambda *_: None, probe=probe)
        say.done(
            f"{study.name}: {sum(done.sampled.values())} rows, all as registered; again: "
            f"`toolkit registers audit --study {study.name} --sample {SAMPLE} --seed {seed}`"
        )
    return audits, unplayed


def _decided(cases: Sequence[Case], say: _Stages) -> list[Decision]:
    say.stage("Verdicts")
    decisions: list[Decision] = []
    for at, case in enumerate(cases):
        with say.doing(f"verdicts of {case.study.name}", at, len(cases)):
            made = case.decide_all()
        decisions += made
        if case.study.name == api.PUBLISHED:
            say.show(made)
        else:
            say.done(f"{case.study.name}: {_counted(made)}")
    return decisions


def _built(
    home: Home,
    target: Path,
    verifications: Sequence[Verification],
    cases: Sequence[Case],
) -> Built:
    from toolkit.cli.site_material import material
    from toolkit.website.build import site_content, write_site

    with output.steps("reproduce") as progress:
        progress("the site")
        return write_site(target, site_content(material(home, target, verifications, cases), progress))


def _rows_text(rows: Mapping[str, int]) -> str:
    return (
        f"{sum(rows.values()):,} rows of {len(rows)} studies are those of their manifests, "
        "and follow from each other"
    )


def _registered_text(standings: Mapping[str, Standing]) -> str:
    names: dict[str, list[str]] = {}
    for name, stands in standings.items():
        names.setdefault(stands.name, []).append(name)
    return "; ".join(f"{stands}: {', '.join(of)}" for stands, of in names.items()) or "nothing is frozen here"


def _played_text(audits: Mapping[str, Audited], unplayed: Mapping[str, Any], seed: int) -> str:
    count = sum(sum(done.sampled.values()) for done in audits.values())
    left = f"; not those of {', '.join(unplayed)}" if unplayed else ""
    return f"{count} random rows of {len(audits)} studies came out as recorded (seed {seed}){left}"


def _decided_text(decisions: Sequence[Decision]) -> str:
    paper = [made for made in decisions if made.study == api.PUBLISHED]
    text = f"{len(decisions)} rules of {len({made.study for made in decisions})} studies"
    return f"{text}; the paper's {_counted(paper)}" if paper else text


def _counted(decisions: Sequence[Decision]) -> str:
    verdicts = Counter(made.verdict.replace("_", " ") for made in decisions)
    said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    return f"{len(decisions)} rules: {said}"


def _site_text(built: Built | None, lack: ToolkitError | None) -> str:
    if built is None:
        return f"not built: {lack.problem}; {lack.remedy}" if lack else "not built"
    changes = f"{len(built.changed)} changed" if built.changed else "unchanged"
    return f"{len(built.files)} files, {changes}: {built.folder / 'index.html'}"
