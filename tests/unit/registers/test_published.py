"""The published registers follow from their sources, byte for byte, and hold counts."""

import csv
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, snapshot
from toolkit.errors import DamagedError, IncompleteError
from toolkit.places import Home
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.published import build_published, check_published, share_of
from toolkit.registers.study import Study
from toolkit.registers.writer import FORMER

REF = RegistrationRef("paired-rollouts", "0" * 64, {})
CARD = (CHECKOUT / "cards" / "published.md").read_text(encoding="utf-8")
SOURCE = CHECKOUT / "registers" / "published" / "source"


def test_building_gives_the_shipped_bytes(home: Home, published: Study, tmp_path: Path) -> None:
    build_published(SOURCE, tmp_path, CARD, published.manifest.registration)
    built, shipped = snapshot(tmp_path), snapshot(home.registers / "published")
    assert set(shipped) - set(built) == {FORMER}
    assert {name for name in built if built[name] != shipped[name]} == {"MANIFEST.json"}
    check_published(SOURCE, home.registers / "published", CARD, published.manifest.registration)


def test_building_over_a_broken_build_gives_the_same_bytes(tmp_path: Path) -> None:
    build_published(SOURCE, tmp_path, CARD, REF)
    whole = snapshot(tmp_path)
    (tmp_path / "MANIFEST.json").unlink()
    (tmp_path / "runs" / "train-00000-of-00001.parquet").write_bytes(b"half")
    build_published(SOURCE, tmp_path, CARD, REF)
    assert snapshot(tmp_path) == whole


def test_a_build_that_is_cut_off_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_published(SOURCE, tmp_path, CARD, REF)
    before, real, done = snapshot(tmp_path), Path.replace, []

    def power_cut(self: Path, target: Path) -> Path:
        done.append(target)
        if len(done) == 5:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", power_cut)
    with pytest.raises(KeyboardInterrupt):
        build_published(SOURCE, tmp_path, CARD, REF)
    assert snapshot(tmp_path) == before


def test_the_registration_named_is_the_one_shipped(published: Study) -> None:
    from toolkit.prereg.registration import load_registration

    registration = load_registration(CHECKOUT / "prereg" / "paired-rollouts")
    amendments = {amendment.id: amendment.sha256 for amendment in registration.amendments}
    assert published.manifest.registration == RegistrationRef(
        registration.name, registration.sha256, amendments
    )
    assert list(amendments) == ["A1"]


def test_every_fraction_of_the_source_is_its_count(published: Study) -> None:
    rows = {(r["run_id"], r["phase"], r["regime"], r["step"]): r for r in published.rows("evaluations")}
    regimes = {"heldout_types": "held_out_types", "noisy_p010": "faults_p010", "noisy_p025": "faults_p025"}
    with (SOURCE / "evaluations.csv").open(encoding="utf-8", newline="") as stream:
        records = list(csv.DictReader(stream))
    assert len(records) == len(rows) == 352
    for r in records:
        own = "flips_q010" if r["condition"] == "C4" else "faults_p025"
        regime = own if r["regime"] in ("noisy", "at_training") else regimes.get(r["regime"], r["regime"])
        row = rows[r["run_id"], r["phase"], regime, int(r["step"])]
        assert row["successes"] / row["episodes"] == pytest.approx(float(r["true_success"]), abs=1e-12)
        assert row["calls"] / row["episodes"] == pytest.approx(float(r["mean_calls"]), abs=1e-9)
        assert row["observed_successes"] + row["flipped"] == row["successes"]
        assert (row["recovered"] is None) == (row["exposed"] == 0)


def test_spurious_groups_of_the_independent_arm_are_the_published_count(published: Study) -> None:
    rows = [
        r for r in published.rows("groups_summary") if r["condition"] == "C4" and r["arm"] == "independent"
    ]
    assert (sum(r["spurious"] for r in rows), sum(r["all_correct"] for r in rows)) == (2080, 3726)


def test_per_task_probe_rows_add_up_to_the_summaries(published: Study) -> None:
    summary = {(r["trajectory"], r["step"], r["noise"], r["estimator"]): r for r in published.rows("probe")}
    tasks = published.rows("probe_clean_tasks")
    for checkpoint in published.rows("probe_checkpoints"):
        at = (checkpoint["trajectory"], checkpoint["step"])
        mine = [t for t in tasks if (t["trajectory"], t["step"]) == at]
        row = summary[(*at, "outcome", "MC")]
        assert len(mine) == 64
        assert sum(t["condition_left"] for t in mine) / 64 == pytest.approx(row["condition_left"], rel=1e-9)
        assert sum(t["condition_right"] for t in mine) / 64 == pytest.approx(row["condition_right"], rel=1e-9)
        assert sum(t["successes"] for t in mine) == checkpoint["clean_successes"]


def test_a_fraction_that_is_no_count_is_refused() -> None:
    assert share_of("0.5703125", 128, "here") == 73
    with pytest.raises(DamagedError, match="not a count"):
        share_of("0.57", 128, "here")


def test_a_missing_source_is_incomplete_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match=r"calibration\.csv cannot be read"):
        build_published(tmp_path / "nowhere", tmp_path / "out", CARD, REF)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("evaluations.csv", "0.546875", "0.546874"),
        ("evaluations.csv", "0.546875", "half"),
        ("evaluations.csv", "0.546875", "nan"),
        ("evaluations.csv", ",challenge,", ",stormy,"),
        ("evaluations.csv", ",64,", ",64.5,"),
        ("training_groups.csv", "zero_variance_frac", "zero_variance"),
        ("decisions.csv", "auc_difference_ci95_low", "auc_low"),
        ("runs.csv", "2026-09-07T12:07:16Z", "last Monday"),
        ("freeze.csv", "freeze commit", "something else"),
        ("probe.csv", "base,0,outcome,MC,lhs_mean", "base,zero,outcome,MC,lhs_mean"),
        ("luck_share.csv", "gate1-c2-paired-s0,0,", "nobody,0,"),
        ("runs.csv", "C2,paired", '"C2,paired'),
        ("runs.csv", "arm,seed", "seed,seed"),
        ("runs.csv", "12:07:16Z", "12:07:16"),
        ("evaluations.csv", ",64,", ",1e999999999,"),
        ("probe_clean_tasks.csv", "base,0,", "base,1e17,"),
        ("decisions.csv", "-0.0039", "abc"),
        ("training_groups.csv", "-s0,groups,2400", "-s0,all_correct_groups,725"),
    ],
)
def test_a_damaged_source_is_refused_and_writes_nothing(
    tmp_path: Path, name: str, old: str, new: str
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for path in SOURCE.glob("*.csv"):
        text = path.read_text(encoding="utf-8")
        if path.name == name:
            assert old in text
            text = text.replace(old, new, 1)
        (source / path.name).write_text(text, encoding="utf-8")
    with pytest.raises(DamagedError):
        build_published(source, tmp_path / "out", CARD, REF)
    assert not (tmp_path / "out").exists()
