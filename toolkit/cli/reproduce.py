"""`toolkit reproduce`: verify, play a sample again, decide, render, and say what came of it."""

from pathlib import Path

import click

from toolkit import api
from toolkit.cli.decide import print_decisions
from toolkit.cli.output import FILE, json_option, print_json, steps
from toolkit.cli.verify_prereg import as_document, print_verification
from toolkit.errors import VerificationError
from toolkit.places import find_home

SAMPLE = 8


@click.command()
@click.option("--site", "folder", type=FILE, help="Folder of the site; site/ if left out.")
@json_option
def reproduce(*, folder: Path | None, as_json: bool) -> None:
    """Verify registrations and registers, play a sample of rows again, decide everything, rebuild the site.

    `toolkit study run embedded --check` plays every row again.

    \b
    Examples:
      toolkit reproduce
      toolkit reproduce --json
      toolkit reproduce --site /tmp/site
    """
    from toolkit.cli.site_material import material
    from toolkit.registers.study import verify_study
    from toolkit.study.check.audit import PLAYED_WITH, audit
    from toolkit.website.build import check_place, site_content, write_site

    home = find_home()
    target = folder or home.site
    check_place(target)
    with steps("reproduce") as progress:
        progress("verifying registers")
        cases = api.load_cases((), home)
        studies = [api.open_study(name, home) for name in home.studies()]
        rows = {study.name: sum(verify_study(study).values()) for study in studies}
        progress("verifying registrations")
        verifications = api.verify_frozen(home)
        refused = [v.registration for v in verifications if v.verdict == "not_verified"]
        if refused:
            raise VerificationError(
                f"registration {', '.join(refused)} does not verify",
                remedy=f"toolkit verify-prereg {refused[0]}",
            )
        audits = {
            study.name: audit(
                study,
                SAMPLE,
                0,
                runs,
                lambda _, run: progress(f"playing rows of {run} again"),
                probe=api.registered_probe(study, runs),
            )
            for study in studies
            if study.has(PLAYED_WITH)
            for runs in (api.registered_runs(study, home),)
        }
        progress("deciding")
        decisions = [decision for case in cases for decision in case.engine.decide_all()]
        built = write_site(target, site_content(material(home, target, verifications), progress))
    if as_json:
        print_json(
            {
                "registers": [{"study": name, "verdict": "verified", "rows": n} for name, n in rows.items()],
                "audits": [
                    {"study": name, "verdict": "verified", "sample": sum(done.sampled.values())}
                    for name, done in audits.items()
                ],
                "registrations": [as_document(verification) for verification in verifications],
                "decisions": [decision.as_dict() for decision in decisions],
                "site": {
                    "folder": str(built.folder),
                    "files": len(built.files),
                    "changed": list(built.changed),
                },
            }
        )
        return
    for name, count in rows.items():
        click.echo(f"registers of {name}: verified, {count} rows")
    for name, done in audits.items():
        click.echo(
            f"audit of {name}: {sum(done.sampled.values())} random rows played again, all as registered"
        )
    for verification in verifications:
        print_verification(verification)
    print_decisions(decisions)
    changes = f"{len(built.changed)} changed" if built.changed else "unchanged"
    click.echo(f"site: {len(built.files)} files, {changes}: {built.folder / 'index.html'}")
