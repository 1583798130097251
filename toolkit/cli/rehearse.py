"""`toolkit rehearse`: a draft on a pilot, before the step that nobody can take back."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli import offers
from toolkit.cli.output import json_option, print_json, print_table, say_line, steps
from toolkit.errors import IncompleteError
from toolkit.places import find_home

if TYPE_CHECKING:
    from toolkit.documents.registrations import RehearsalDocument, RehearsedPowerDocument
    from toolkit.drafting.power import Power
    from toolkit.drafting.rehearsal import Rehearsal
    from toolkit.places import Home

PAGES = "rehearsals"
DRAWN_WITH = "jinja2"


@click.command()
@click.argument("study", shell_complete=offers.registrations)
@click.argument("pilot", metavar="PILOT...", nargs=-1, required=True)
@click.option(
    "--simulations",
    type=click.IntRange(0, 100_000),
    default=200,
    help="Simulated studies for each effect; 0 for no power.",
)
@click.option("--rng-seed", type=click.IntRange(0, 2**32), default=1, help="Seed of the simulations.")
@json_option
def rehearse(*, study: str, pilot: tuple[str, ...], simulations: int, rng_seed: int, as_json: bool) -> None:
    """Rehearse the draft of STUDY on a PILOT: decide, power and draw it. Nothing of that decides anything.

    The draft's endpoints are fitted to the seeds, steps and sizes that the pilot has. Listed is whatever
    `toolkit freeze` would refuse, and what no row of such runs could ever decide. The drawing is written to
    `rehearsals/STUDY.html`; registers are not.

    \b
    Examples:
      toolkit rehearse my-study pilot.csv
      toolkit rehearse my-study 'pilot/*.eval' --simulations 1000
      toolkit rehearse my-study pilot.csv --simulations 0 --json
    """
    from toolkit.drafting.rehearsal import rehearse as play
    from toolkit.files import read_text
    from toolkit.registers.importing.mapping import read_mapping
    from toolkit.registers.importing.reading import read_log

    home = find_home()
    rules = home.registration_folder(study) / "rules.toml"
    mapping = home.mappings / f"{study}.toml"
    if not mapping.is_file():
        raise IncompleteError(
            f"there is no mapping for {study}",
            where=mapping,
            remedy=f"toolkit new-study {study} --table {pilot[0]} writes one",
        )
    with tempfile.TemporaryDirectory() as scratch, steps(f"rehearse {study}") as progress:
        done = play(
            read_text(rules),
            read_mapping(mapping),
            read_log(pilot),
            Path(scratch) / study,
            simulations=simulations,
            rng_seed=rng_seed,
            progress=progress,
        )
        page = _drawn(done, home, study)
    if as_json:
        print_json(_document(done, page))
    else:
        _show(done, page)


def _drawn(done: Rehearsal, home: Home, study: str) -> Path | None:
    """Write the page of a rehearsal; nothing where what draws is not installed."""
    from toolkit.files import write_text

    if find_spec(DRAWN_WITH) is None:
        return None
    from toolkit.drafting.rehearsal import DECIDES_NOTHING
    from toolkit.rooms import site

    page = home.root / PAGES / f"{study}.html"
    page.parent.mkdir(exist_ok=True)
    said = {"decides_nothing": DECIDES_NOTHING, "problems": done.problems, "fitted": done.fitted}
    write_text(page, site().rehearsal_page(done, **said))
    return page


def _document(done: Rehearsal, page: Path | None) -> RehearsalDocument:
    from toolkit.drafting.rehearsal import DECIDES_NOTHING

    return {
        "standing": DECIDES_NOTHING,
        "problems": list(done.problems),
        "fitted": list(done.fitted),
        "decisions": [decision.as_dict() for decision in done.decisions],
        "power": {
            rule: found if isinstance(found, str) else [_power(one) for one in found]
            for rule, found in done.powers.items()
        },
        "page": str(page) if page else None,
    }


def _power(power: Power) -> RehearsedPowerDocument:
    return {
        "effect": power.design.effect,
        "seeds": power.design.seeds,
        "pass_probability": power.pass_probability,
        "monte_carlo_error": power.monte_carlo_error,
        "assumed": power.assumed,
    }


def _show(done: Rehearsal, page: Path | None) -> None:
    from toolkit.cli.decide import print_decisions
    from toolkit.drafting.rehearsal import DECIDES_NOTHING

    say_line(DECIDES_NOTHING.upper())
    print_decisions(done.decisions)
    for change in done.fitted:
        say_line(f"  {change}")
    powers = [
        (rule, one) for rule, found in done.powers.items() if not isinstance(found, str) for one in found
    ]
    if powers:
        rows = [
            (
                rule,
                f"{one.design.effect:+.3f}",
                str(one.design.seeds),
                f"{one.pass_probability:.3f}",
                f"{one.monte_carlo_error:.3f}",
            )
            for rule, one in powers
        ]
        print_table(
            ("rule", "effect", "seeds", "passes", "±"), rows, "in studies as registered", numbers=True
        )
    for rule, found in done.powers.items():
        said = [found] if isinstance(found, str) else dict.fromkeys(f"assumed: {p.assumed}" for p in found)
        for line in said:
            say_line(f"  {rule}: {line}")
    say_line("to be mended before it is frozen:" if done.problems else "nothing keeps it from being frozen")
    for problem in done.problems:
        say_line(f"  {problem}")
    if page:
        say_line(f"drawn: {page}")
