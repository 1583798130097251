"""The registered probe of the embedded study: its registers, its amendment, and what is noticed."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, Result
from toolkit import api
from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.places import Home
from toolkit.prereg.evidence import amendment_anchor, anchor
from toolkit.prereg.registration import Registration, load_registration
from toolkit.registers.arrow import Row
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study, open_study
from toolkit.study.check.audit import ProbeReplayer, audit
from toolkit.study.play.rows import rows_of_run
from toolkit.study.probing.design import (
    RegisteredProbe,
    is_measured_by,
    own_data_amendments,
    registered_probe,
    required_probe,
)
from toolkit.study.probing.probed import TABULATED, probe_trajectory
from toolkit.study.probing.report import recompute, report
from toolkit.study.probing.run import probe_jobs
from toolkit.training.specification import Specification

RUN = "c2-paired-s1"


@pytest.fixture(scope="module")
def embedded() -> Study:
    return open_study(CHECKOUT / "registers" / "embedded")


@pytest.fixture(scope="module")
def registration() -> Registration:
    return load_registration(CHECKOUT / "prereg" / "embedded")


@pytest.fixture(scope="module")
def runs(embedded: Study) -> dict[str, Specification]:
    return api.registered_runs(embedded, Home(CHECKOUT))


@pytest.fixture(scope="module")
def probe(registration: Registration, runs: dict[str, Specification]) -> RegisteredProbe:
    return required_probe(registration, runs.values())


def test_every_run_of_tier_1_is_probed_at_every_checkpoint(embedded: Study, probe: RegisteredProbe) -> None:
    assert len(probe.runs) == 14
    expected = {("base", 0), *((run.run_id, step) for run in probe.runs for step in range(20, 101, 20))}
    for scored in ("all", "actions"):
        rows = [row for row in embedded.rows("probe_checkpoints") if row["scored"] == scored]
        assert {(row["trajectory"], row["step"]) for row in rows} == expected


def test_the_untrained_policy_probed_again_is_what_is_registered(
    embedded: Study, probe: RegisteredProbe
) -> None:
    rows = {run.run_id: rows_of_run(embedded, "checkpoints", run.run_id) for run in probe.runs}
    base = probe_jobs(probe.design, probe.runs, rows)[0]
    files = probe_trajectory(base)
    found = json.loads(files["base.json"].split(b"\n", 1)[1])["tables"]
    for name in TABULATED:
        registered = [row for row in embedded.rows(name) if row["trajectory"] == "base"]
        key = TABLES[name].key
        assert sorted(found[name], key=lambda row: [str(row[part]) for part in key]) == sorted(
            registered, key=lambda row: [str(row[part]) for part in key]
        )
    path = embedded.folder / "probe_gram" / "base.parquet"
    assert files["base.parquet"] == path.read_bytes()


def test_figures_computed_from_the_evidence_alone_are_those_stored(
    embedded: Study, probe: RegisteredProbe
) -> None:
    meant = report(embedded, RUN).checkpoints
    compared, residual = recompute(embedded, meant, probe, lambda _: None)
    assert compared == 2 * 16 * 64 + len(meant) * (1 + 4 + 64 + 16 + 31)
    assert residual < 1e-12


@pytest.mark.parametrize(
    "table", ["probe", "probe_intervals", "probe_clean_tasks", "probe_diagnostic_tasks", "probe_checkpoints"]
)
def test_a_stored_figure_that_does_not_follow_is_named(
    table: str, embedded: Study, probe: RegisteredProbe
) -> None:
    class Changed:
        name, folder = embedded.name, embedded.folder

        def has(self, asked: str) -> bool:
            return embedded.has(asked)

        manifest = embedded.manifest

        def rows(self, asked: str) -> list[Row]:
            rows = embedded.rows(asked)
            if asked != table:
                return rows
            name, at = next(
                (name, at)
                for at, row in enumerate(rows)
                for name, value in row.items()
                if row["trajectory"] == "base" and isinstance(value, float) and value
            )
            return [*rows[:at], {**rows[at], name: rows[at][name] * (1 + 1e-5)}, *rows[at + 1 :]]

    meant = report(embedded, "base").checkpoints
    with pytest.raises(VerificationError, match=f"{table} is not what the probe's evidence gives"):
        recompute(Changed(), meant, probe, lambda _: None)  # type: ignore[arg-type]


def test_another_design_than_the_registered_one_is_named(embedded: Study, probe: RegisteredProbe) -> None:
    meant = report(embedded, "base").checkpoints
    other = replace(probe, design=replace(probe.design, root="another"))
    with pytest.raises(VerificationError, match="probe_indices is not what"):
        recompute(embedded, meant, other, lambda _: None)


def test_the_probe_s_seeds_hold_the_amendment_s_tokens(
    registration: Registration, probe: RegisteredProbe, tmp_path: Path
) -> None:
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


def test_an_amendment_that_concerns_only_its_own_probe_is_told_apart(registration: Registration) -> None:
    assert own_data_amendments(registration) == {"A1"}


@pytest.mark.parametrize(
    "change",
    [
        ("each(probe_actions_s0 > 1)", "all(each(probe_actions_s0 > 1), mean(c2_auc) > 0)"),
        ('parts = "joint"', 'parts = "joint"\nsecondary = ["c2_auc"]'),
    ],
    ids=["a-test-reads-a-frozen-endpoint", "a-secondary-figure-is-a-frozen-endpoint"],
)
def test_an_amendment_that_reads_what_was_there_is_none(
    change: tuple[str, str], registration: Registration
) -> None:
    (amendment,) = registration.amendments
    text = amendment.rules.replace(*change)
    assert text != amendment.rules
    changed = replace(registration, amendments=(replace(amendment, rules=text),))
    assert own_data_amendments(changed) == frozenset()


class Without:
    """A study some of whose tables are not there, or have other rows."""

    def __init__(self, study: Study, absent: tuple[str, ...], **columns: Any) -> None:
        self._study, self._absent, self._columns = study, absent, columns

    def has(self, table: str) -> bool:
        return table not in self._absent and self._study.has(table)

    def columns(self, table: str, names: list[str]) -> Any:
        import pyarrow as pa

        rows = self._study.columns(table, names).to_pylist()
        return pa.Table.from_pylist(
            [row | {n: v for n, v in self._columns.items() if n in row} for row in rows]
        )


OF_PROBE = tuple(name for name in TABLES if name.startswith("probe"))


@pytest.mark.parametrize(
    ("study", "holds"),
    [
        (((), {}), True),
        ((OF_PROBE, {}), True),
        ((("probe_checkpoints",), {}), False),
        ((("probe",), {}), False),
        (((), {"spec_sha256": "0" * 64}), False),
    ],
    ids=["measured", "not-measured-yet", "no-checkpoints", "no-figures", "another-design"],
)
def test_what_was_measured_says_by_which_design(
    study: tuple[tuple[str, ...], dict[str, str]], holds: bool, embedded: Study, probe: RegisteredProbe
) -> None:
    absent, columns = study
    assert is_measured_by(probe, Without(embedded, absent, **columns)) is holds  # type: ignore[arg-type]


def test_a_missing_token_leaves_the_order_open(copy: Home, toolkit: Callable[..., Result]) -> None:
    for token in (copy.registrations / "embedded" / "evidence").glob("A1.demonstration-a.*"):
        token.unlink()
    result = toolkit("verify-prereg", "embedded", "--json")
    (document,) = result.json()
    assert (result.code, document["verdict"]) == (3, "incomplete")
    outcomes = {check["step"]: check["outcome"] for check in document["checks"]}
    assert outcomes[9] == "missing"


def test_a_token_of_nobody_is_noticed(copy: Home, toolkit: Callable[..., Result]) -> None:
    evidence = copy.registrations / "embedded" / "evidence"
    (evidence / "A1.zz.tsr").write_bytes((evidence / "A1.demonstration-a.tsr").read_bytes())
    assert toolkit("verify-prereg", "embedded").code == 1


def test_a_registration_without_a_probe_says_so(runs: dict[str, Specification]) -> None:
    other = load_registration(CHECKOUT / "prereg" / "paired-rollouts")
    assert registered_probe(other, runs.values()) is None
    with pytest.raises(IncompleteError, match="registers no probe"):
        required_probe(other, runs.values())


def test_a_row_of_evidence_is_probed_again(embedded: Study, probe: RegisteredProbe) -> None:
    prober = ProbeReplayer(embedded, probe)
    rows = prober.rows(RUN)
    for row in (rows[0], rows[-1]):
        prober.check(row)


@pytest.mark.parametrize("column", ["gram", "rewards", "tokens", "weights"])
def test_a_changed_row_of_evidence_is_noticed(column: str, embedded: Study, probe: RegisteredProbe) -> None:
    prober = ProbeReplayer(embedded, probe)
    row = prober.rows(RUN)[0]
    first: Any = row[column][0]
    changed = {**row, column: [not first if column == "rewards" else first + 1e-9, *row[column][1:]]}
    with pytest.raises(VerificationError, match="came out otherwise") as error:
        prober.check(changed)
    assert error.value.where == column


@pytest.mark.parametrize("change", [{"trajectory": "c1-paired-s0"}, {"task": 64}, {"trajectory": "base"}])
def test_a_row_of_no_registered_checkpoint_is_noticed(
    change: dict[str, Any], embedded: Study, probe: RegisteredProbe
) -> None:
    prober = ProbeReplayer(embedded, probe)
    with pytest.raises(VerificationError, match="no registered checkpoint or task"):
        prober.check({**prober.rows(RUN)[0], **change})


def test_an_audit_draws_evidence_where_a_probe_is_registered(
    embedded: Study, runs: dict[str, Specification], probe: RegisteredProbe
) -> None:
    done = audit(embedded, 5, 3, runs, lambda *_: None, probe=probe)
    assert done.sampled == {"episodes": 1, "groups": 1, "luck_share": 1, "checkpoints": 1, "probe_gram": 1}


def test_a_report_shows_what_the_readme_shows(toolkit: Callable[..., Result]) -> None:
    shown = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    found = toolkit("probe", "report", "--study", "embedded", "--trajectory", "base").out
    rows = [line for line in shown.splitlines() if line.startswith("│ base@0")]
    assert len(rows) == 2
    for row in rows:
        assert row in found
