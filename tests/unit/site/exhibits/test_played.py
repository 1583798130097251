"""The page of the published study beside its own draws says what the audit finds."""

from tests.unit.site.reading import Read, pages_of
from toolkit.decisions.case import Case
from toolkit.site.charts.plots import MINUS
from toolkit.site.exhibits import played
from toolkit.site.material import Material


def test_only_the_published_study_has_the_page(tiny: Case) -> None:
    assert pages_of(Material((tiny,), (tiny.study,)), played) == {}


def test_the_page_has_every_run_with_what_was_found_of_it(case: Case) -> None:
    pages = pages_of(Material((case,), (case.study,)), played)
    read = Read(pages[played.NAME])
    for run in case.study.rows("runs"):
        assert (run["run_id"] in read.text) == (run["condition"] != "C0"), run["run_id"]
    for said in (
        f"t1-c4-paired-s0 lost what its seed flips: correlation 0.97, under another seed {MINUS}0.21",
        "Evaluations under flips are 49: each lost no more",
        f"t1-c4-independent-s0: 33 of 100 steps are impossible, correlation {MINUS}0.06;",
        "1 167 of 800 (21%) 25 of 600 (4%)",
        "toolkit adopt published ../paired-rollouts",
        "Episodes, training groups, the probe's Gram evidence and weights are not public",
    ):
        assert said in " ".join(read.text.split()), said
