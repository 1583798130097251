"""A page of the published figures beside the draws of the published seeds, and of what nobody can play."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from toolkit.lab.worlds.published.audit import NOT_PUBLIC, TABLES, Audit, audit
from toolkit.lab.worlds.published.tasks import KEPT, PUBLISHED, SEED
from toolkit.lab.worlds.published.words import REMEDY
from toolkit.registers.arrow import Row
from toolkit.registers.study import Study
from toolkit.site.charts.plots import Axis, Panel, Spot, plain, scatter
from toolkit.site.charts.svg import ACCENT, Chart, drawn
from toolkit.site.material import Exhibit, Material
from toolkit.site.page import Entry, Page, run_page, study_page

NAME = "played.html"
CHANGES = (1, 8, 16)
PATH = (
    (
        "Under independent schedules, groups in which every rollout succeeds get unequal rewards by luck.",
        "toolkit decide H1a",
        "The registered rule, executed on the published counts, with each criterion and what it read.",
    ),
    (
        "The grader's flip is one draw of the episode's schedule, and all rollouts of a paired row share it.",
        "toolkit verify published",
        "Every published training step and evaluation beside the flips that its seeds draw.",
    ),
    (
        "Pools, protocol and rules were frozen and timestamped before the runs.",
        REMEDY,
        "Both tokens verified, every task generated anew, and each figure of the run registers compared.",
    ),
)
"""What the paper says, in short, the command that checks it, and what comes out."""


def pages(material: Material) -> Iterator[Page]:
    """Yield the page, where a study has the published training steps and what was played beside them."""
    for case in material.cases:
        if all(map(case.study.has, TABLES)):
            yield _page(case.study)


EXHIBIT = Exhibit("toolkit.site.exhibits", pages, Entry("played", "Played", NAME))


def _page(study: Study) -> Page:
    found = audit({name: study.rows(name) for name in TABLES})
    title = "The published study beside its own draws"
    return Page(
        NAME,
        "played.html",
        title,
        "played",
        {
            "study": study.name,
            "study_page": study_page(study.name),
            "run_pages": {run["run_id"]: run_page(study.name, run["run_id"]) for run in study.rows("runs")},
            "found": found,
            "path": PATH,
            "noticed": [(by, *_noticed(found, by)) for by in CHANGES],
            "charts": [_flips(found), _faults(study, found)],
            "agents": study.rows("reference_agents"),
            "pools": [(pool, KEPT[pool], PUBLISHED[pool]) for pool in KEPT],
            "seed": SEED,
            "not_public": NOT_PUBLIC,
            "adopt": REMEDY,
        },
    )


def _noticed(found: Audit, by: int) -> Iterator[tuple[int, int]]:
    """Yield, of paired and of independent runs, how many changes of one step are noticed, and of how many."""
    for arm in ("paired", "independent"):
        runs = [each for each in found.runs if each.run["arm"] == arm]
        yield sum(each.noticed(by) for each in runs), sum(2 * len(each.lost) for each in runs)


def _flips(found: Audit) -> Chart:
    """Draw a paired run's lost successes over the flips that its own seed draws, and another's."""
    shown = next(each for each in found.runs if each.run["arm"] == "paired")
    other = shown.others[0]
    run = shown.run["run_id"]
    panels = [
        _panel(
            run,
            f"under {words}: {len(held.impossible)} of {len(shown.lost)} steps impossible",
            Axis("rollouts that the seed flips"),
            list(zip(held.drawn, shown.lost, strict=True)),
        )
        for words, held in (("its own seed", shown.own), ("another seed", other))
    ]
    title = f"{run} lost what its seed flips: correlation {plain(shown.own.correlation, '.2f')}, "
    title += f"under another seed {plain(other.correlation, '.2f')}"
    caption = "One dot a training step. A flip makes a success count as a failure, so a step loses at most "
    caption += "what is flipped (the line)."
    return drawn(title, caption, ("step", "drawn", "lost"), scatter(panels, Axis("successes that were lost")))


def _faults(study: Study, found: Audit) -> Chart:
    """Draw a paired run's changes in success over the scripted agent's, under two seeds' schedules."""
    shown = max((each for each in found.followed if each.run["arm"] == "paired"), key=lambda each: each.own)
    run, size = shown.run["run_id"], shown.run["group_size"]
    trained, played = (
        [row for row in study.rows(name) if row["run_id"] == run]
        for name in ("training_steps", "reference_steps")
    )
    panels = [
        _panel(
            run,
            f"under {words}: correlation {value:.2f}",
            Axis(f"change in the scripted agent's successes, each counted {size} times"),
            [
                (size * x, y)
                for x, y in zip(_changes(played, column), _changes(trained, "successes"), strict=True)
            ],
        )
        for words, value, column in (
            ("its own schedules", shown.own, "successes"),
            ("another seed's schedules", shown.others, "other_successes"),
        )
    ]
    title = f"{run} goes up and down with a scripted agent on the same tasks and schedules"
    caption = (
        "One dot a change from one training step to the next. Both play the same tasks; only the faults "
    )
    caption += "differ between the panels."
    return drawn(
        title,
        caption,
        ("step", "scripted", "trained"),
        scatter(panels, Axis("change in the policy's successes")),
    )


def _changes(rows: Sequence[Row], column: str) -> list[int]:
    return [after[column] - before[column] for before, after in pairwise(rows)]


def _panel(run: str, note: str, axis: Axis, points: Sequence[tuple[int, int]]) -> Panel:
    spots = tuple(
        Spot(x, y, f"{run}, step {step}: {x}, {y}", ((step, x, y),), look=ACCENT)
        for step, (x, y) in enumerate(points)
    )
    return Panel(axis, note, spots)
