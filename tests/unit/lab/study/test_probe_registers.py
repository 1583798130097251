"""The registered probe of the embedded study: its registers, its amendment, and what is noticed."""

import json
import shutil
from collections.abc import Iterable
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.unit.lab.study.changed import Changed
from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.lab.play.rows import rows_of_run
from toolkit.lab.probe.evidence import Place
from toolkit.lab.probing import design, figures, run
from toolkit.lab.verification.replay import ProbeReplayer
from toolkit.prereg.evidence import amendment_anchor, anchor
from toolkit.prereg.registration import Registration, load_registration
from toolkit.registers.arrow import Row
from toolkit.registers.row_tables import TABLES_OF_PROBE
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study
from toolkit.rules.rulebook import rulebook_of
from toolkit.specification import Specification
from toolkit.structs import replace
from toolkit.verification.registered import own_data_amendments

RUN = "c2-paired-s1"


@pytest.fixture(scope="module")
def registration() -> Registration:
    return load_registration(CHECKOUT / "prereg" / "embedded")


@pytest.fixture(scope="module")
def probe(registration: Registration, registered: dict[str, Specification]) -> design.RegisteredProbe:
    return design.required_probe(registration, registered.values())


def test_a_probe_is_played_in_the_world_of_its_runs_and_in_one_alone() -> None:
    registration = load_registration(CHECKOUT / "prereg" / "worlds")
    found = design.registered_design(registration, rulebook_of(registration))
    assert {rollouts.world for rollouts in found.sets} == {"published"}
    elsewhere = registration.rules.replace('world = "published"', 'world = "bfcl_turns"', 1)
    other = replace(registration, rules=elsewhere)
    with pytest.raises(IncompleteError, match="not played in one world"):
        design.registered_design(other, rulebook_of(other))


def by_key(name: str, rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: [str(row[part]) for part in TABLES[name].key])


def test_the_untrained_policy_probed_again_is_what_is_registered(embedded, probe) -> None:
    rows = {each.run_id: rows_of_run(embedded, "checkpoints", each.run_id) for each in probe.runs}
    files = run.probe_trajectory(run.probe_jobs(probe.design, probe.runs, rows)[0])
    tables = json.loads(files["base.json"].split(b"\n", 1)[1])["tables"]
    for name in design.TABULATED:
        registered = [row for row in embedded.rows(name) if row["trajectory"] == "base"]
        assert by_key(name, tables[name]) == by_key(name, registered)
    assert files["base.parquet"] == (embedded.folder / "probe_gram" / "base.parquet").read_bytes()


def test_figures_computed_from_the_evidence_alone_are_those_stored(embedded, probe) -> None:
    meant = [row for row in figures.report(embedded, RUN).checkpoints if row["step"] in (20, 100)]
    compared, residual = figures.recompute(embedded, meant, probe, lambda _: None)
    assert compared == 2 * 16 * 64 + len(meant) * (1 + 4 + 64 + 16 + 31)
    assert residual < 1e-12


def test_a_table_of_a_place_is_derived_from_its_trajectory_s_evidence_alone(
    embedded: Study, registration: Registration, probe: design.RegisteredProbe
) -> None:
    registered = design.registered_design(registration, rulebook_of(registration))
    assert registered == probe.design
    places = [Place(RUN, step, scored) for step, scored in ((20, "all"), (20, "actions"), (100, "all"))]
    derived = figures.figures(embedded, registered, places, ("probe", "probe_diagnostic_tasks"))
    assert set(derived) == {"probe", "probe_diagnostic_tasks"}
    for name, by_place in derived.items():
        assert list(by_place) == places
        for place, found in by_place.items():
            stored = [row for row in embedded.rows(name) if figures.place_of(row) == place]
            assert by_key(name, found) == by_key(name, stored)


def test_figures_of_what_was_not_probed_are_not_there(embedded, published, probe) -> None:
    for place in (Place(RUN, 21, "all"), Place(RUN, 20, "tokens")):
        with pytest.raises(IncompleteError, match="a checkpoint has no evidence") as error:
            figures.figures(embedded, probe.design, [place])
        assert error.value.expected == str(place)
    with pytest.raises(IncompleteError, match="ships no evidence"):
        figures.figures(published, probe.design, [Place(RUN, 20, "all")])


@pytest.fixture(scope="module")
def rows(embedded: Study) -> dict[str, list[Row]]:
    """Return the rows of the probe's tables, read once."""
    return {name: embedded.rows(name) for name in TABLES_OF_PROBE}


def test_what_does_not_follow_from_evidence_and_design_is_named(embedded, rows, probe) -> None:
    def refused(table: str, study: Any, by: design.RegisteredProbe) -> None:
        with pytest.raises(DamagedError, match=rf"{table}\.\w+ is not what follows from"):
            figures.recompute(study, meant, by, lambda _: None)

    meant = figures.report(embedded, "base").checkpoints
    for table in ("probe_checkpoints", "probe_intervals"):
        stored = rows[table]
        at = next(at for at, row in enumerate(stored) if row["trajectory"] == "base")
        name = next(name for name, value in stored[at].items() if isinstance(value, float) and value)
        changed = [*stored[:at], {**stored[at], name: stored[at][name] * (1 + 1e-5)}, *stored[at + 1 :]]
        refused(table, Changed(embedded, {**rows, table: changed}), probe)
    other = replace(probe, design=replace(probe.design, root="another"))
    refused("probe_indices", Changed(embedded, rows), other)
    others = [row for row in rows["probe_drift"] if row["trajectory"] != RUN]
    fewer: Any = Changed(embedded, {**rows, "probe_drift": others})
    with pytest.raises(VerificationError, match="probe_drift is not on the registered checkpoints"):
        figures.recompute(fewer, meant, probe, lambda _: None)


def test_the_probe_s_seeds_hold_the_amendment_s_tokens(registration, probe, tmp_path) -> None:
    assert probe.design.root == f"embedded {amendment_anchor(registration, 'A1')}"
    assert amendment_anchor(registration, "A1") != anchor(registration)
    shutil.copytree(registration.folder, tmp_path / "embedded")
    changed = replace(registration, folder=tmp_path / "embedded")
    evidence = tmp_path / "embedded" / "evidence"
    token = evidence / "A1.demonstration-a.tsr"
    other = (evidence / "D1.demonstration-a.tsr").read_bytes()
    assert amendment_anchor(changed, "A1") == amendment_anchor(registration, "A1")
    (evidence / "A1.zz.tsr").write_bytes(other)
    assert amendment_anchor(changed, "A1") == amendment_anchor(registration, "A1")
    token.write_bytes(other)
    assert amendment_anchor(changed, "A1") != amendment_anchor(registration, "A1")
    token.write_bytes(b"nothing")
    with pytest.raises(DamagedError, match="a token of amendment A1 is none"):
        amendment_anchor(changed, "A1")
    token.unlink()
    with pytest.raises(IncompleteError):
        amendment_anchor(changed, "A1")


def test_an_amendment_that_reads_what_was_there_does_not_concern_its_own_probe_alone(registration) -> None:
    assert own_data_amendments(registration) == {"A1"}
    (amendment,) = registration.amendments
    for old, new in (
        ("each(probe_actions_s0 > 1)", "all(each(probe_actions_s0 > 1), mean(c2_auc) > 0)"),
        ('parts = "joint"', 'parts = "joint"\nsecondary = ["c2_auc"]'),
    ):
        text = amendment.rules.replace(old, new)
        assert text != amendment.rules
        changed = replace(registration, amendments=(replace(amendment, rules=text),))
        assert own_data_amendments(changed) == frozenset()


def test_what_was_measured_says_by_which_design(embedded, rows, probe) -> None:
    def holds(**tables: list[Row] | None) -> bool:
        return design.is_measured_by(probe.design, Changed(embedded, tables))  # type: ignore[arg-type]

    assert holds()
    assert holds(**dict.fromkeys(TABLES_OF_PROBE))
    assert not holds(probe_checkpoints=None)
    assert not holds(probe=None)
    other = {"spec_sha256": "0" * 64}
    assert not holds(probe_checkpoints=[row | other for row in rows["probe_checkpoints"]])


def test_a_registration_without_a_probe_says_so(registered: dict[str, Specification]) -> None:
    other = load_registration(CHECKOUT / "prereg" / "paired-rollouts")
    assert design.registered_probe(other, registered.values()) is None
    with pytest.raises(IncompleteError, match="registers no probe"):
        design.required_probe(other, registered.values())


def test_a_row_of_evidence_is_probed_again_and_what_was_changed_in_it_noticed(embedded, probe) -> None:
    prober = ProbeReplayer(embedded, probe)
    first, *_, last = prober.rows(RUN)
    for row in (first, last):
        prober.check(row)
    for column in ("gram", "rewards", "tokens", "weights"):
        value, *others = first[column]
        other = not value if column == "rewards" else value + 1e-9
        with pytest.raises(VerificationError, match="came out otherwise") as error:
            prober.check({**first, column: [other, *others]})
        assert error.value.where == column
    for place in ({"trajectory": "c1-paired-s0"}, {"task": 64}, {"trajectory": "base"}):
        with pytest.raises(VerificationError, match="no registered checkpoint or task"):
            prober.check({**first, **place})
