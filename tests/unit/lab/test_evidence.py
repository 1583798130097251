"""What a registration gives its runs, whatever a study says of them; and rows that contradict themselves."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tampering.forger import Forger
from tests.tampering.measure import copy_of
from tests.tampering.of_rows import PAIRED, adapter, nudged, smallest_first
from tests.tampering.tampering import LARGE, SMALL
from toolkit.canonical import canonical
from toolkit.errors import DamagedError, IncompleteError
from toolkit.lab import evidence
from toolkit.lab.evidence import RegisteredRuns, check_tied
from toolkit.lab.play.rows import specification_of
from toolkit.places import Home
from toolkit.prereg.evidence import anchor
from toolkit.prereg.registration import Registration, load_registration
from toolkit.registers.study import Study, open_study
from toolkit.rules.rulebook import rulebook_of

RUN = "c2-paired-s0"


@pytest.fixture(scope="module")
def registration(home: Home, embedded: Study) -> Registration:
    return load_registration(home.registrations / embedded.manifest.registration.name)


def stored(embedded: Study) -> dict[str, str]:
    return {row["run_id"]: row["specification"] or "" for row in embedded.rows("runs")}


def test_the_runs_of_the_shipped_study_have_their_registered_specifications(embedded, registration) -> None:
    runs = RegisteredRuns(registration, rulebook_of(registration))
    for run, text in stored(embedded).items():
        specification = runs.specification(run, text)
        assert specification is not None
        assert canonical(specification.document()) == text
        assert runs.place(run)["arm"] == specification.arm
    assert runs.place("nobody") == {}


def changed(text: str, **values: Any) -> str:
    return json.dumps(json.loads(text) | values)


def test_nothing_but_the_tasks_is_taken_from_what_is_stored(embedded, registration) -> None:
    runs, text = RegisteredRuns(registration, rulebook_of(registration)), stored(embedded)[RUN]
    registered = runs.specification(RUN, text)
    assert runs.specification(RUN, changed(text, root="chosen", steps=1, seed=9)) == registered
    other = runs.specification(RUN, changed(text, pools={"test": "0" * 64}))
    assert other is not None
    assert other.pools == {"test": "0" * 64}


def test_without_its_tokens_a_registration_gives_all_but_the_root(
    embedded: Study, registration: Registration, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(_: Registration) -> str:
        raise IncompleteError("a token is not here")

    text = changed(stored(embedded)[RUN], steps=1)
    registered = RegisteredRuns(registration, rulebook_of(registration)).specification(RUN, text)
    monkeypatch.setattr(evidence, "anchor", absent)
    found = RegisteredRuns(registration, rulebook_of(registration)).specification(
        RUN, changed(text, root="claimed")
    )
    assert registered is not None
    assert found is not None
    assert found.root == "claimed"
    assert found.steps == registered.steps
    assert anchor(registration) in registered.root


@pytest.mark.parametrize(
    ("run", "text", "problem"),
    [
        ("nobody", "{}", "nobody is no run of the registered matrix"),
        (RUN, "{", f"the specification of {RUN} is none"),
        (RUN, "[]", f"the specification of {RUN} is none"),
        (RUN, '{"pools": 1}', f"the specification of {RUN} is none"),
    ],
)
def test_what_is_no_run_or_no_specification_is_damage(registration, run, text, problem) -> None:
    with pytest.raises(DamagedError, match=problem):
        RegisteredRuns(registration, rulebook_of(registration)).specification(run, text)


def specified(forger: Forger):
    return {PAIRED: specification_of(forger.study, PAIRED)}


@pytest.mark.parametrize("name", [SMALL, LARGE])
def test_the_rows_of_a_shipped_study_do_not(home: Home, name: str) -> None:
    study = open_study(home.study_folder(name))
    check_tied(study, {PAIRED: specification_of(study, PAIRED)})


@pytest.mark.parametrize(
    ("study", "change", "place"),
    [
        (SMALL, adapter, f"adapters row run_id={PAIRED}, step=4"),
        (
            SMALL,
            lambda forger: forger.set("groups", 0, PAIRED, advantages=lambda old: [9.0, *old[1:]]).seal(),
            f"groups row run_id={PAIRED}, step=1, position=0",
        ),
        (
            LARGE,
            lambda forger: forger.set("groups", 0, PAIRED, advantages=smallest_first).seal(),
            f"groups row run_id={PAIRED}, step=1, position=0",
        ),
        (
            LARGE,
            lambda forger: forger.set("checkpoints", 2, PAIRED, parameters=nudged).seal(),
            f"checkpoints row run_id={PAIRED}, step=40",
        ),
    ],
)
def test_a_row_that_contradicts_itself_is_named(tmp_path: Path, study: str, change, place: str) -> None:
    forger = Forger(copy_of(study, tmp_path), study)
    change(forger)
    with pytest.raises(DamagedError) as error:
        check_tied(forger.study, specified(forger))
    assert error.value.where == place
