"""`toolkit registers audit`: random rows, played again."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli import offers
from toolkit.cli.output import STUDY, counted, json_option, remark, tell
from toolkit.errors import UsageError
from toolkit.places import find_home
from toolkit.rooms import laboratory

if TYPE_CHECKING:
    from toolkit.documents.registers import AuditDocument

DEFAULT_SAMPLE = 16
MOST = 1_000_000
SEEDS = 2**32  # short, and every reader of JSON holds it


@click.command()
@click.option(
    "--study",
    metavar=STUDY,
    shell_complete=offers.studies,
    help="Study to audit; the one that ships its rows if left out.",
)
@click.option(
    "--sample", type=click.IntRange(1, MOST), default=DEFAULT_SAMPLE, help="How many rows to play again."
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63),
    help="Seed of an earlier audit, to draw the same rows again; a fresh one if left out.",
)
@json_option
def audit(*, study: str | None, sample: int, seed: int | None, as_json: bool) -> None:
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
    opened = api.open_study(study or _with_rows())
    laboratory().check_playable(opened)
    case = api.open_case(opened)
    seed = fresh_seed() if seed is None else seed
    with counted("audit") as (watch, _):
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
    document: AuditDocument = {
        "study": opened.name,
        "verdict": "verified",
        "rows": done.rows,
        "sample": count,
        "seed": seed,
        "tables": done.sampled,
        "derived": done.derived,
        "runs": list(done.runs),
    }
    tell(
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
    names = [name for name in home.studies() if laboratory().is_playable(api.open_study(name, home))]
    if len(names) != 1:
        home.say_absent(remark)
        raise UsageError(
            "name the study to audit", expected=", ".join(names) or "a study that ships its rows"
        )
    return names[0]
