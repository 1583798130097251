"""A home with one small study, to be played from the command line."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.registrations import rehash
from tests.unit.lab.study import fake_play
from toolkit.places import HOME_VARIABLE, Home

WHERE = {"faults_p025": ("0.25", "0"), "flips_q010": ("0", "0.10"), "clean": ("0", "0")}


def small_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a home whose registration has regimes, small runs, and a play that is quick."""
    home = folder / "home"
    prereg = home / "prereg" / "small"
    (home / "cards").mkdir(parents=True)
    (home / "registers").mkdir()
    shutil.copytree(CHECKOUT / "prereg" / "paired-rollouts", prereg)
    rules = (prereg / "rules.toml").read_text().replace('name = "paired-rollouts"', 'name = "small"')
    for regime, (faults, flips) in WHERE.items():
        line = f'fixed = {{ fault_rate = "{faults}", flip_rate = "{flips}" }}'
        rules = rules.replace(line, f'{line}\nregime = "{regime}"')
    # BFCL is no environment of this toolkit.
    head, _, tail = rules.rpartition('regime = "faults_p025"\n')
    for old, new in (
        ("steps = 100\n", "steps = 20\n"),
        ("prompts_per_step = 24", "prompts_per_step = 2"),
        ("training_groups = 2400", "training_groups = 40"),
        ("training_rollouts = 19200", "training_rollouts = 320"),
    ):
        head = head.replace(old, new, 1)
    (prereg / "rules.toml").write_text(head + tail)
    rehash(prereg)
    (prereg / "evidence").mkdir()
    for token in ("freetsa.tsr", "digicert.tsr"):
        (prereg / "evidence" / token).write_bytes(token.encode())
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    monkeypatch.setattr("toolkit.lab.play.segments.play_segment", fake_play.asked)
    monkeypatch.setattr("toolkit.lab.task_pools.STUDY_POOLS", ("diagnostic",))
    return Home(home)
