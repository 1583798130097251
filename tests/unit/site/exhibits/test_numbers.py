"""The numbers on this project's own pages are those of definitions, decisions and registers."""

import tomllib
from collections.abc import Callable

import pytest

from tests.conftest import CHECKOUT, Result
from tests.unit.site.conftest import opened
from tests.unit.site.numbers import check_outcomes, classed, near, numbers, section, table, text, tree
from toolkit.registers.study import Study
from toolkit.site.exhibits import foreign, paper, theory, world
from toolkit.site.material import Material

DECIDING = {"pilot", "primary", "reference"}


def study_of(material: Material, name: str) -> Study:
    return next(study for study in material.studies if study.name == name)


def test_the_world_page_shows_draws_of_the_episodes_own_schedule(material: Material) -> None:
    (page,) = world.pages(material)
    shown = tree(page)
    events = [part for part in classed(shown, "event") if "≥" in text(part) or "<" in text(part)]
    assert events
    for event in events:
        (digest,) = (part.get("title") for part in event.iter("span") if part.get("title"))
        draw, rate = numbers(text(event).partition("draw ")[2])[:2]
        assert draw == near(int(str(digest)[:16], 16) / 2**64, 4)  # the first eight bytes
        assert ("<" in text(event)) == (draw < rate)


def test_the_page_of_bfcl_counts_its_pools_and_its_tools() -> None:
    bfcl = opened("bfcl")
    (page,) = foreign.pages(Material((bfcl,), (bfcl.study,), cards=CHECKOUT / "cards"))
    shown = tree(page)
    rows = bfcl.study.polars("task_pools").collect().to_dicts()
    for cells in table(shown, "Tasks of bfcl"):
        is_turn = text(cells["Episodes"]) == "bfcl turns"
        # Whoever names a turn says which of its scenario it is.
        mine = [
            row
            for row in rows
            if row["pool"] == text(cells["Pool"]) and ("." in row["forms"].rpartition("_")[2]) == is_turn
        ]
        counted = (
            len(mine),
            sum(row["reads"] + row["writes"] for row in mine),
            sum(row["writes"] for row in mine),
        )
        names = ("Tasks", "Planned calls", "Writes among them")
        assert tuple(numbers(text(cells[name]))[0] for name in names) == counted
    declared = tomllib.loads((CHECKOUT / "toolkit/lab/worlds/bfcl/tools.toml").read_text("utf-8"))["tools"]
    listed = {text(cells["Tool"]): text(cells["Kind"]) for cells in table(shown, "Tools")}
    assert listed == {name: said["kind"] for name, said in declared.items()}
    about = text(section(shown, "tools"))
    assert f"The {len(declared)} tools" in about
    for kind in ("read", "list", "write"):
        assert f"{sum(said['kind'] == kind for said in declared.values())} of kind {kind}" in about


def test_the_theory_page_shows_what_the_definitions_give(material: Material) -> None:
    (page,) = theory.pages(material)
    rows = {}
    for row in table(tree(page), "The bandit at the paper's settings"):
        rows[text(row["Quantity"])] = [numbers(text(row[name]))[0] for name in ("independent", "paired")]
    # A reward is 1 where a success of probability 1/2 was not flipped, with probability 9/10: its variance is
    # 0.45 x 0.55, twice of which is the contrast's; under one flip for both, only the policies differ.
    assert rows["Variance of a reward contrast"] == [0.495, 0.45]
    assert f"is {1 - 0.9**8 - 0.1**8:.3f} at q = 0.1 and G = 8" in text(section(tree(page), "spurious"))


def test_the_theory_page_derives_the_drift_of_the_papers_bandit(material: Material) -> None:
    """From the mean and the traces that app:bandit prints, and from the example's own words."""
    (page,) = theory.pages(material)
    shown = tree(page)
    rows = table(shown, "The bandit's drift under Adam")
    assert [int(text(row["Groups in a step"])) for row in rows] == [1, 2, 4, 8, 16, 24]
    for batch, row in ((int(text(row["Groups in a step"])), row) for row in rows):
        by_hand = [0.1969**2 / (0.1969**2 + trace / batch) ** 0.5 for trace in (0.002615, 0.005845)]
        assert numbers(text(row["independent"])) == [pytest.approx(by_hand[0], abs=1.2e-4)]
        assert numbers(text(row["paired"])) == [pytest.approx(by_hand[1], abs=1.2e-4)]
        assert numbers(text(row["paired / independent"])) == [near(by_hand[1] / by_hand[0], 4)]
    words = text(section(shown, "drift"))
    # Traces 1.5 + 20/2 and 21; a step of two groups divides by the roots of 1 + 1.5/2 and 1 + 1/2.
    assert f"The trace falls to {11.5 / 21:.3f}" in words
    assert f"= {2 * 21 / 11.5:.1f} independent ones" in words
    assert f"falls, too, to {(1.5 / 1.75) ** 0.5:.3f}" in words


def test_the_papers_page_shows_what_rules_decide(material: Material, toolkit: Callable[..., Result]) -> None:
    (page,) = paper.pages(material)
    documents = toolkit("decide", "--all", "--study", "published", "--json").json()
    decisions = {document["rule"]: document for document in documents}
    shown = tree(page)
    assert "H2a" in check_outcomes(shown, "tab:outcomes, published", decisions)
    assert "P4" in check_outcomes(shown, "tab:predictions, published", decisions)
    published = study_of(material, "published")
    deciding = {run["run_id"] for run in published.rows("runs") if run["role"] in DECIDING}
    counts = [count for count in published.rows("evaluations") if count["run_id"] in deciding]
    for row in table(shown, "tab:finals, published"):
        known = {"condition": text(row["condition"]), "arm": text(row["arm"])}
        rates = [
            100 * count["successes"] / count["episodes"]
            for count in counts
            if known.items() <= count.items()
            and (count["phase"], count["pool"], count["regime"]) == ("final", "test", "clean")
            and text(row["seed"]) in {"mean", str(count["seed"])}
        ]
        assert numbers(text(row["clean"])) == [near(sum(rates) / len(rates), 1)]
