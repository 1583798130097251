"""Inspect's logs become a registered, decided study with a site, as those of every other program do."""

import pytest

from tests.unit.cli.any_log import MOST_COMMANDS, MOST_SECONDS, journey
from tests.unit.stack import require_inspect
from toolkit.places import HOME_VARIABLE


@pytest.mark.parametrize("source", ["inspect/strategies", "inspect/letters", "inspect/refusals"])
def test_a_log_becomes_a_decided_study_with_a_site(source, tmp_path, monkeypatch) -> None:
    require_inspect()
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    done = journey(tmp_path, source)
    assert done.commands <= MOST_COMMANDS
    assert done.seconds < MOST_SECONDS
    assert done.verdicts["H1"] in {"pass", "miss"}
    assert (done.site / "mine" / "H1.html").is_file()
