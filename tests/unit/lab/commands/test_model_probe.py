"""A language model's study from its runs to the registers of its probe, by every study's commands."""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import CHECKOUT
from tests.registrations import rehash
from tests.unit.stack import require_stack

require_stack()

from tests.conftest import run as toolkit  # noqa: E402
from tests.unit.lab.study import fake_play  # noqa: E402
from tests.unit.lab.study.small_model import adapter_rows, recipe, save_base  # noqa: E402
from toolkit.files import read_bytes  # noqa: E402
from toolkit.lab.play.conclusion import conclude, files_of  # noqa: E402
from toolkit.lab.play.matrix import specify_registered  # noqa: E402
from toolkit.lab.play.segments import encode, link, segment_name  # noqa: E402
from toolkit.lab.play.workplace import Launch, Workplace  # noqa: E402
from toolkit.lab.policies.language_model.opening import model_commit  # noqa: E402
from toolkit.lab.task_pools import summarize  # noqa: E402
from toolkit.places import HOME_VARIABLE  # noqa: E402
from toolkit.prereg.registration import load_registration  # noqa: E402
from toolkit.registers.study import open_study  # noqa: E402
from toolkit.structs import replace  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.specification import Specification

POOLS = ("diagnostic", "validation")
SIZES = ("step.prompts=2", "step.rollouts=8")
RULES = """
language = 1
name = "small"
title = "A small study of a language model"
deciding_roles = ["primary"]

[training]
steps = 20
group_size = 8
prompts_per_step = 2
training_groups = 40
training_rollouts = 320
loss_type = "dapo"

[[matrix]]
tier = 1
condition = "C2"
noise = "tool faults at p = 0.25"
fixed = {{ fault_rate = "0.25", flip_rate = "0", model_commit = "{commit}" }}
regime = "faults_p025"
arms = ["paired", "independent"]
seeds = [0]
scale_rewards = "group"
for = ["H"]

[probe]
tiers = [1]
scored = ["all"]
group_size = 2
flip_rate = "0.10"
outcome = {{ pool = "validation", regime = "clean", tasks = 3, rollouts = 4 }}
transition = {{ pool = "diagnostic", regime = "faults_p025", tasks = 2, schedules = 2, groups = 4 }}
level = "0.95"
resamples = 50
rng_seed = 13
steps = [20]

[endpoints.condition]
title = "L/R of the exact condition at the untrained policy"
register = "probe"
outcome = {{ figure = "condition_left", over = "condition_right" }}
where = {{ noise = "outcome", estimator = "MC", scored = "all" }}
by = "checkpoint"
checkpoints = ["base@0"]
unit = "ratio"
range = ["0", "1000000"]

[rules.H]
kind = "hypothesis"
title = "Pairing lowers the variance under flips"
text = "Words."
[[rules.H.criteria]]
id = "below"
text = "Words."
test = "mean(condition) < 1"
"""


def table(name: str, document: dict[str, Any]) -> str:
    """Return a document of texts, numbers and tables as TOML."""
    plain = [f"{key} = {json.dumps(value)}" for key, value in document.items() if not isinstance(value, dict)]
    inner = [table(f"{name}.{key}", value) for key, value in document.items() if isinstance(value, dict)]
    return "\n".join([f"[{name}]", *plain, "", *inner])


def lay_run(workplace: Workplace, run: Specification, rows: list[dict]) -> None:
    """Write what training a run leaves: made-up groups and episodes, and adapters."""
    folder = workplace.run(run)
    folder.launch(replace(Launch.now(run, 0), launched_at="2027-01-01T00:00:00Z"))
    before = ""
    for number, (end, row) in enumerate(zip(run.ends, rows, strict=True)):
        segment = fake_play.wholly(run, end, None)
        del segment["checkpoints"]
        raw = encode(link(run, number, end, before), {**segment, "steps": [], "adapters": [row]})
        folder.keep({segment_name(number): raw})
        before = hashlib.sha256(raw).hexdigest()
    folder.keep(conclude(run, map(read_bytes, folder.segments)))
    folder.complete(files_of(run))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a home in which the runs of a study were trained, and nothing was probed."""
    home, base = tmp_path_factory.mktemp("home"), save_base(tmp_path_factory.mktemp("base"))
    settings = recipe(base, *SIZES)
    prereg = home / "prereg" / "small"
    for name in ("cards", "registers"):
        (home / name).mkdir()
    shutil.copytree(CHECKOUT / "prereg" / "paired-rollouts", prereg)
    for name in ("amendments", "deviations"):
        shutil.rmtree(prereg / name)
    rules = RULES.format(commit=model_commit(str(base), None))
    (prereg / "rules.toml").write_text(rules + table("recipe", settings.document()))
    rehash(prereg, ["record.toml", "trust.toml"])
    (prereg / "evidence").mkdir()
    for token in ("freetsa.tsr", "digicert.tsr"):
        (prereg / "evidence" / token).write_bytes(token.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(home))
        patch.setattr("toolkit.lab.task_pools.STUDY_POOLS", POOLS)
        pools = {name: summarize(name).sha256 for name in POOLS}
        for run in specify_registered(load_registration(prereg), pools):
            rows = adapter_rows(base, run, tmp_path_factory.mktemp(run.run_id))  # type: ignore[arg-type]
            lay_run(Workplace(home / "runs" / "small"), run, rows)
        yield home


@pytest.fixture(autouse=True)
def at_home(home: Path, at_checkout: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(home))


@pytest.fixture(scope="module")
def sealed(home: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(home))
        done = toolkit("study", "run", "small", "--keep-complete", "--processes", "1", "--json")
    assert done.code == 0, done.err
    return home / "registers" / "small"


def test_its_registers_are_verified_and_its_probe_computed_anew_from_the_evidence(sealed: Path) -> None:
    places = {(row["trajectory"], row["step"]) for row in open_study(sealed).rows("probe_checkpoints")}
    assert places == {("base", 0), ("c2-independent-s0", 20), ("c2-paired-s0", 20)}
    assert {row["rule"] for row in open_study(sealed).rows("decisions")} == {"H"}
    assert toolkit("registers", "verify", "--study", "small").code == 0
    document = toolkit("probe", "report", "--study", "small", "--check", "--json").json()
    assert {(row["trajectory"], row["step"]) for row in document["checkpoints"]} == places
    assert document["check"]["verdict"] == "verified"
    assert "c2-paired-s0@20" in toolkit("probe", "report", "--study", "small").out


@pytest.mark.slow
def test_probed_from_its_registers_it_is_the_same(sealed: Path, tmp_path: Path) -> None:
    done = toolkit(
        "probe", "run", "small", "--processes", 1, "--folder", tmp_path / "p", "--into", tmp_path, "--json"
    )
    assert done.code == 0, done.err
    for name in ("probe", "probe_gram", "probe_checkpoints", "probe_intervals"):
        assert open_study(tmp_path / "small").rows(name) == open_study(sealed).rows(name)


def test_an_audit_says_what_compares_it_instead(sealed: Path) -> None:
    assert sealed.is_dir()
    done = toolkit("registers", "audit", "--study", "small").refused(3)
    assert "toolkit probe run STUDY --check" in " ".join(done.err.split())


def test_a_probe_that_could_not_weigh_its_rollouts_is_refused_before_anything_is_trained(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(home / "prereg", tmp_path / "prereg")
    (tmp_path / "registers").mkdir()
    prereg = tmp_path / "prereg" / "small"
    rules = (prereg / "rules.toml").read_text()
    for before, after in (("sequence_mask", "token_mask"), ('kind = "transformers"', 'kind = "vllm"')):
        assert before in rules
        rules = rules.replace(before, after)
    (prereg / "rules.toml").write_text(rules)
    rehash(prereg, ["record.toml", "trust.toml"])
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    toolkit("study", "run", "small").refused(2, "weighs whole rollouts", "token_mask")
    assert not (tmp_path / "runs").exists()
