"""The command line: one JSON document, the right exit code, no traceback, nothing written."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Toolkit, run, snapshot
from tests.registrations import chained, rehash
from tests.row_study import with_value
from tests.unit.registers import test_study as damaged
from toolkit.errors import IncompleteError
from toolkit.places import Home
from toolkit.registers.arrow import row_sha256
from toolkit.site import build


@pytest.mark.slow
def test_reproduce_builds_the_site_and_ends_with_the_table(toolkit: Toolkit, tmp_path: Path) -> None:
    result = toolkit("reproduce", "--site", tmp_path / "site")
    assert result.code == 0
    assert (tmp_path / "site" / "index.html").is_file()
    assert "gate2" in result.out
    document = toolkit("reproduce", "--site", tmp_path / "site", "--json").json()
    assert document["site"]["changed"] == []
    assert toolkit("site", "check", "--folder", tmp_path / "site").code == 0
    assert len(document["decisions"]) == 21 + 23 + 4 + 9 + 20 + 9 + 7 + 7
    assert [audit["study"] for audit in document["audits"]] == ["bfcl", "coupled", "embedded", "map"]
    for audit in document["audits"]:
        assert (audit["verdict"], audit["sample"]) == ("verified", 8)
        assert f"--sample 8 --seed {audit['seed']}" not in result.out
        assert f"toolkit registers audit --study {audit['study']} --sample 8 --seed " in result.out
    _, _, summary = result.out.partition("What was reproduced\n")
    labels = [line.split()[0] for line in summary.splitlines()]
    assert labels == ["rows", "registered", "played", "decided", "site"]
    assert f"{sum(table['rows'] for table in document['registers']):,} rows of published, bfcl," in summary


def test_reproduce_does_without_the_packages_of_the_site_unless_a_folder_is_named(
    toolkit: Toolkit, alone: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack = IncompleteError("the site needs packages that are not installed", remedy="pip install them")
    monkeypatch.setattr(build, "lacking_packages", lambda: lack)
    result = toolkit("reproduce")
    assert result.code == 0, result.err
    assert "site        not built: the site needs packages that are not installed; pip install" in result.out
    assert toolkit("reproduce", "--json").json()["site"] is None
    toolkit("reproduce", "--site", alone.root / "there").refused(3, "the site needs packages")


MANIFEST = "registers/published/MANIFEST.json"
TABLE = "registers/published/evaluations/train-00000-of-00001.parquet"
RULES = "prereg/paired-rollouts/rules.toml"
BAR, LOWER = "mean(c2_auc) >= 0.03", "mean(c2_auc) >= 0.02"


def edit(home: Home, file: str, old: str, new: str) -> None:
    path = home.root / file
    before = path.read_bytes()
    path.write_bytes(before.replace(old.encode(), new.encode()))
    assert path.read_bytes() != before


def edit_and_rehash_rules(home: Home, old: str, new: str) -> None:
    """Edit the rules as somebody would who also recomputes the hashes."""
    edit(home, RULES, old, new)
    rehash(home.registrations / "paired-rollouts")


def later(home: Home, name: str, text: str) -> None:
    """Record an amendment as somebody would who also recomputes the hashes."""
    folder = home.registrations / "paired-rollouts"
    (folder / "amendments" / name).write_text(text)
    rehash(folder, [*chained(folder), f"amendments/{name}"])


def rebuilt(home: Home, old: str, new: str) -> None:
    """Edit the rules, and build the registers for the edited ones."""
    edit_and_rehash_rules(home, old, new)
    assert run("registers", "build", "published").code == 0


def with_wild_rows(home: Home) -> None:
    """Put a consistent manifest over impossible rows: more successes than episodes."""
    folder = home.study_folder("published")
    table = with_value(damaged.table_of(folder), "successes", 0, 900)
    damaged.rewrite(folder, table)
    damaged.reseal(folder, lambda d: d["tables"]["evaluations"].update(row_sha256=row_sha256(table)))


def with_edited_manifest(home: Home) -> None:
    edit(home, MANIFEST, '"rows": 352', '"rows": 353')


def with_borrowed_id(home: Home) -> None:
    first = home.registrations / "paired-rollouts" / "amendments" / "A1.toml"
    later(home, "A0.toml", first.read_text().replace("< 1)", "< 2)"))


def without_amendment(home: Home) -> None:
    folder = home.registrations / "paired-rollouts"
    (folder / "amendments" / "A1.toml").unlink()
    rehash(folder, [name for name in chained(folder) if "A1" not in name])


DAMAGES: dict[str, tuple[int, Callable[[Home], object]]] = {
    "is not the file that the manifest names": (4, lambda home: (home.root / TABLE).write_bytes(b"PAR1PAR1")),
    "column 'successes' of evaluations is missing": (
        4,
        lambda home: damaged.READ["no column"](home.study_folder("published")),
    ),
    "cannot be read": (3, lambda home: (home.root / TABLE).unlink()),
    "larger than it can be": (4, with_wild_rows),
    "the manifest was changed after it was written": (4, with_edited_manifest),
    "under another name than its own": (
        4,
        lambda home: (home.registers / "published").rename(home.registers / "other"),
    ),
    "rules.toml was changed after its hash was recorded": (1, lambda home: edit(home, RULES, BAR, LOWER)),
    "belongs to other frozen files": (4, lambda home: edit_and_rehash_rules(home, BAR, LOWER)),
    "'c2_aux' is not declared": (4, lambda home: rebuilt(home, BAR, BAR.replace("auc", "aux"))),
    "no operator 'median'": (4, lambda home: rebuilt(home, BAR, BAR.replace("mean", "median"))),
    "the registration of study 'published' is not here": (
        3,
        lambda home: (home.registrations / "paired-rollouts").rename(home.registrations / "another"),
    ),
    "an amendment that the registration does not have": (4, without_amendment),
    "expected: amendments/A1.toml": (4, with_borrowed_id),
}


@pytest.mark.parametrize("says", DAMAGES)
def test_damage_ends_in_one_message_and_nothing_is_written(toolkit: Toolkit, alone: Home, says: str) -> None:
    code, damage = DAMAGES[says]
    damage(alone)
    before = snapshot(alone.root)
    toolkit("reproduce", "--json").refused(code)
    toolkit("decide", "H2a", "H1b").refused(code, says)
    assert snapshot(alone.root) == before


@pytest.mark.parametrize("command", ["registers schema", "registers schema --json"])
def test_a_reader_may_leave_early(command: str) -> None:
    line = f"{sys.executable} -m toolkit {command} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, cwd=CHECKOUT)
    assert done.stdout.splitlines()[-1] in ("0", "141")  # 141 where the output was longer than the pipe
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["x" * 201, "\udcff"])
def test_a_name_that_is_too_long_or_no_text_is_refused(toolkit: Toolkit, name: str) -> None:
    toolkit("draw", 0, "get_order", name, 0).refused(2, "a name")
