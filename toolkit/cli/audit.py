"""`toolkit registers audit`: random rows, played again."""

import click

from toolkit import api
from toolkit.cli.output import STUDY, json_option, steps, tell
from toolkit.errors import UsageError
from toolkit.places import find_home

DEFAULT_SAMPLE = 16
MOST = 1_000_000


@click.command()
@click.option("--study", metavar=STUDY, help="Study to audit; the one that ships its rows if left out.")
@click.option(
    "--sample", type=click.IntRange(1, MOST), default=DEFAULT_SAMPLE, help="How many rows to play again."
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63),
    default=0,
    help="Seed of the draw of the rows: another one draws others.",
)
@json_option
def audit(*, study: str | None, sample: int, seed: int, as_json: bool) -> None:
    """Play random rows of a study's registers again, and fail on the first that comes out otherwise.

    Episodes and luck-share tables are played by their run's checkpoint. For a training group, training goes
    on from the checkpoint before it, and every group on the way has to come out as registered. The probe's
    rollouts are played and scored again.

    \b
    Examples:
      toolkit registers audit --study embedded --sample 4
      toolkit registers audit --study embedded --sample 2 --seed 7 --json
    """
    from toolkit.study.check.audit import audit as audit_study
    from toolkit.study.check.audit import check_playable

    opened = api.open_study(study or _with_rows())
    check_playable(opened)
    registered = api.registered_runs(opened)
    with steps("audit") as progress:
        done = audit_study(
            opened,
            sample,
            seed,
            registered,
            lambda played, run: progress(f"{played} of {sample} rows, now {run}"),
            probe=api.registered_probe(opened, registered),
        )
    count = sum(done.sampled.values())
    drawn = ", ".join(f"{n} of {table}" for table, n in done.sampled.items())
    tell(
        {
            "study": opened.name,
            "verdict": "verified",
            "rows": done.rows,
            "sample": count,
            "seed": seed,
            "tables": done.sampled,
            "runs": list(done.runs),
        },
        f"{opened.name}: {count} of {done.rows} rows played again, all as registered ({drawn})",
        as_json=as_json,
    )


def _with_rows() -> str:
    from toolkit.study.check.audit import PLAYED_WITH

    home = find_home()
    names = [name for name in home.studies() if api.open_study(name, home).has(PLAYED_WITH)]
    if len(names) != 1:
        raise UsageError(
            "name the study to audit", expected=", ".join(names) or "a study that ships its rows"
        )
    return names[0]
