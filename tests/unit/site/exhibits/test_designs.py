"""The piece of the front page: a table as the register has it, what its columns say, few bytes."""

import gzip
import re
from collections import defaultdict
from math import fsum

import pytest

from tests.unit.site.reading import numbers, page_of, rendered
from toolkit.decisions.case import Case
from toolkit.estimators import luck_share
from toolkit.registers.query import ask
from toolkit.site.exhibits.designs import EXHIBIT
from toolkit.site.material import Front, Material
from toolkit.site.page import Page
from toolkit.site.pages import home

MOST_BYTES = 4_000
MARK = re.compile(r'<g class="mark" role="img" aria-label="([^"]*)">(.*?)</g>')
QUERY = """
SELECT run_id, step, pool, regime, task, schedule, observed_rewards FROM luck_share
ORDER BY run_id, step, pool, regime, task, schedule
"""


def front_page(case: Case) -> Page:
    (page,) = home.pages(Material((case,), front=Front("t", "q"), exhibits=(EXHIBIT,)))
    return page


def section(text: str) -> str:
    return text.partition('<section aria-labelledby="designs">')[2].partition("</section>")[0]


@pytest.fixture(scope="module")
def piece(tiny: Case) -> str:
    return section(rendered(front_page(tiny)))


def test_the_table_is_the_first_whose_luck_share_is_nearest_the_mean(tiny: Case, piece: str) -> None:
    tables: dict[tuple[object, ...], list[list[bool]]] = defaultdict(list)
    for *place, _, rewards in ask(tiny.study, QUERY).rows:
        tables[tuple(place)].append(list(rewards))
    every = {place: luck_share(table).share for place, table in tables.items()}
    shares = {place: value for place, value in every.items() if value is not None}
    mean = fsum(shares.values()) / len(shares)
    nearest = min(abs(value - mean) for value in shares.values())
    run, step, _, _, task = place = next(
        at for at, value in shares.items() if abs(value - mean) < nearest + 1e-12
    )
    table = tables[place]
    drawn = [mark for mark in MARK.findall(piece) if mark[0].startswith("Schedule ")]
    assert [label for label, _ in drawn] == [
        f"Schedule {number}: {sum(column)} of 8 policy samples succeed" for number, column in enumerate(table)
    ]
    for (_, shapes), column in zip(drawn, table, strict=True):
        squares = {
            kind: path.count("M") for kind, path in re.findall(r'path class="(\w+)" d="([^"]*)"', shapes)
        }
        assert (squares.get("won", 0), squares.get("lost", 0)) == (sum(column), 8 - sum(column))
    text = " ".join(re.sub(r"<[^>]+>", "", piece.partition("<figcaption>")[2]).split())
    for part in (f"{run}, step {step}", f"task {task},", f"mean of all {len(shares):,} such tables"):
        assert part in text
    assert f"explains {100 * shares[place]:.0f}% of the reward's variance" in text
    assert numbers(text.partition("luck share ")[2])[0] == pytest.approx(shares[place], abs=0.0051)
    assert numbers(text.partition(f"of {tiny.study.name}: ")[2])[0] == pytest.approx(mean, abs=0.0051)
    always, never = ([i for i, c in enumerate(table) if sum(c) == count] for count in (8, 0))
    assert numbers(text.partition("Under schedule")[2].partition("it always")[0]) == always
    assert numbers(text.partition("it always succeeds, under")[2].partition("never")[0]) == never


def test_both_designs_say_who_meets_which_schedule_in_few_bytes(tiny: Case, piece: str) -> None:
    labels = [label for label, _ in MARK.findall(piece)]
    assert "Paired: all 8 rollouts of a group meet one schedule" in labels
    alone = [f"Independent: rollout {i} alone meets schedule {i}" for i in range(1, 9)]
    assert [label for label in labels if label.startswith("Independent")] == alone
    assert len(gzip.compress(piece.encode())) < MOST_BYTES
    page_of(Material((tiny,), exhibits=(EXHIBIT,)), "index.html")  # reads without a style in it


def test_a_study_that_published_no_table_leaves_the_designs_and_no_exhibit_leaves_nothing(case: Case) -> None:
    shown = section(rendered(front_page(case)))
    assert "Independent: rollout 8" in shown
    assert "Schedule 0" not in shown
    assert "In the table" not in shown
    (page,) = home.pages(Material((case,)))
    assert section(rendered(page)) == ""
