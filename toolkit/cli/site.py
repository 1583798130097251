"""`toolkit site`: the static site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.load import load_cases, load_study, verify_frozen
from toolkit.cli.output import json_option, print_json
from toolkit.cli.progress import steps
from toolkit.places import Home, find_home

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.decisions.case import Case
    from toolkit.registers.arrow import Row
    from toolkit.website.material import Material


@click.group()
def site() -> None:
    """Build and check the site that renders every outcome from the registers."""


@site.command()
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write; site/ if left out.")
@json_option
def build(*, out: Path | None, as_json: bool) -> None:
    """Build the site; the same registers give the same bytes.

    \b
    Examples:
      toolkit site build
      toolkit site build --out /tmp/site --json
    """
    from toolkit.website.build import check_place, write_site

    home = find_home()
    folder = out or home.site
    check_place(folder)
    with steps("site") as progress:
        built = write_site(folder, content(home, progress))
    document = {"folder": str(built.folder), "pages": len(built.files), "changed": list(built.changed)}
    if as_json:
        print_json(document)
    else:
        click.echo(f"{len(built.files)} files, {len(built.changed)} changed: {built.folder / 'index.html'}")


@site.command()
@click.option("--folder", type=click.Path(path_type=Path), help="Folder to check; site/ if left out.")
@json_option
def check(*, folder: Path | None, as_json: bool) -> None:
    """Check that the site is, byte for byte, what its registers give.

    \b
    Examples:
      toolkit site check
    """
    from toolkit.website.build import check_site

    home = find_home()
    with steps("site") as progress:
        expected = content(home, progress)
    check_site(folder or home.site, expected)
    if as_json:
        print_json({"folder": str(folder or home.site), "files": len(expected), "identical": True})
    else:
        click.echo(f"{len(expected)} files identical in {folder or home.site}")


def content(home: Home, progress: Callable[[str], None]) -> dict[str, bytes]:
    """Return the site's files from everything that the home holds."""
    from toolkit.website.build import site_content

    return site_content(material(home), progress)


def material(home: Home) -> Material:
    """Return what the site is made of."""
    from toolkit.website.front import read_front
    from toolkit.website.material import Material
    from toolkit.website.paper import read_paper

    cases = tuple(load_cases((), home))
    studies = tuple(load_study(name, home) for name in home.studies())
    return Material(
        cases,
        studies,
        tuple(verify_frozen(home)),
        (),
        read_front(home.cards, cases),
        _probe_figures(cases),
        read_paper(home.cards),
    )


def _probe_figures(cases: Sequence[Case]) -> dict[str, list[Row]]:
    """Return how certain every study's probe figures are, as far as the study allows."""
    from toolkit.study.probe_report import SUMMARY, report

    probed = [case.study for case in cases if case.study.has(SUMMARY)]
    return {study.name: [row for rows in report(study).figures.values() for row in rows] for study in probed}
