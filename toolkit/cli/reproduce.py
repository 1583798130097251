"""`toolkit reproduce`: verify, play a sample again, decide, render, and say what came of it."""

from pathlib import Path

import click

from toolkit import api
from toolkit.cli import standing
from toolkit.cli.audit import fresh_seed
from toolkit.cli.authorities import trust_option
from toolkit.cli.decide import print_decisions
from toolkit.cli.output import FILE, json_option, print_json, steps
from toolkit.cli.standing import require_option
from toolkit.cli.verify_prereg import print_verification
from toolkit.places import find_home

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
    from toolkit.cli.site_material import material
    from toolkit.prereg.standing import standing_of
    from toolkit.study.check.audit import audit, is_playable
    from toolkit.study.check.whole import check_whole
    from toolkit.website.build import check_place, site_content, write_site
    from toolkit.worlds.world import missing

    home = find_home()
    target = folder or home.site
    check_place(target)
    with steps("reproduce") as progress:
        progress("verifying registers")
        cases = api.load_cases((), home, trust_files=trust_files)
        decided = {case.study.name: case for case in cases}
        others = [api.open_study(name, home) for name in home.studies() if name not in decided]
        studies = sorted((*(case.study for case in cases), *others), key=lambda study: study.name)
        rows = {
            study.name: sum(check_whole(study, decided.get(study.name), progress).values())
            for study in studies
        }
        progress("verifying registrations")
        verifications = api.verify_frozen(home, trust_files=trust_files)
        seed = fresh_seed()
        lacking = {study.name: lack for study in studies if (lack := missing(study))}
        audits = {
            study.name: audit(
                study,
                SAMPLE,
                seed,
                runs,
                lambda _, run: progress(f"playing rows of {run} again"),
                probe=api.registered_probe(study, runs),
            )
            for study in studies
            if is_playable(study) and study.name not in lacking
            for runs in (api.registered_runs(study, home),)
        }
        progress("deciding")
        decisions = [decision for case in cases for decision in case.decide_all()]
        standings = {v.registration: standing_of(v) for v in verifications}
        built = write_site(target, site_content(material(home, target, verifications, cases), progress))
    if as_json:
        print_json(
            {
                "registers": [{"study": name, "verdict": "verified", "rows": n} for name, n in rows.items()],
                "audits": [
                    {
                        "study": name,
                        "verdict": "verified",
                        "sample": sum(done.sampled.values()),
                        "seed": seed,
                    }
                    for name, done in audits.items()
                ]
                + [
                    {"study": name, "verdict": "incomplete", "lacks": str(lack.problem)}
                    for name, lack in lacking.items()
                ],
                "registrations": [verification.as_dict() for verification in verifications],
                "decisions": [decision.as_dict() for decision in decisions],
                "site": {
                    "folder": str(built.folder),
                    "files": len(built.files),
                    "changed": list(built.changed),
                },
            }
        )
        standing.end(context, standings, least)
        return
    for name, count in rows.items():
        click.echo(f"registers of {name}: verified, {count} rows")
    for name, done in audits.items():
        click.echo(
            f"audit of {name}: {sum(done.sampled.values())} random rows played again, all as registered; "
            f"the same rows: toolkit registers audit --study {name} --sample {SAMPLE} --seed {seed}"
        )
    for name, lack in lacking.items():
        click.echo(f"audit of {name}: not done: {lack.problem}; {lack.remedy}")
    for verification in verifications:
        print_verification(verification)
    print_decisions(decisions)
    changes = f"{len(built.changed)} changed" if built.changed else "unchanged"
    click.echo(f"site: {len(built.files)} files, {changes}: {built.folder / 'index.html'}")
    standing.end(context, standings, least)
