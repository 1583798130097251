"""Tamperings with what was registered, with what belongs to it, and with figures of others."""

import hashlib
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from tests.registrations import chained, rehash
from tests.tampering.forger import Forger, edit_text
from tests.tampering.of_rows import more
from tests.tampering.tampering import LARGE, SMALL, Tampering, core, small
from toolkit.files import write_bytes
from toolkit.prereg.registration import load_registration
from toolkit.registers.arrow import Row
from toolkit.registers.manifest import read_manifest, write_manifest
from toolkit.registers.published import build_published
from toolkit.registers.schema import TABLES
from toolkit.structs import replace
from toolkit.verification import registered

FIGURE = (
    "t1-c0-clean-s1-h100,C0,clean,1,periodic,40,challenge,64,"
    "0.546875,0.546875,1.0,0.578125,0.40625,0.0,11.28125,0.546875"
)
HIGHER = FIGURE.replace("0.546875", "0.5625")

BEFORE = datetime(2026, 11, 23, 13, 0, tzinfo=UTC)
"""A moment before the first run of the small study, and its freeze."""


def lowered(forger: Forger) -> None:
    """Lower the bar of H2a in the frozen rules."""
    path = forger.registration / "rules.toml"
    edit_text(path, rule_of(path), lower(rule_of(path)))


def rule_of(rules: Path) -> str:
    """Return H2a as it was frozen."""
    text = rules.read_text(encoding="utf-8")
    start = text.index("[rules.H2a]")
    return text[start : text.index("\n[rules.H2b]", start)]


def lower(rule: str) -> str:
    return (
        rule.replace("0.03", "0.001")
        .replace("each(c2_auc > 0)", "each(c2_auc > -0.9)")
        .replace("mean(c2_final_noisy) >= 0", "mean(c2_final_noisy) >= -0.9")
    )


def lowered_and_hashed(forger: Forger) -> None:
    lowered(forger)
    frozen = forger.registration / "FROZEN.sha256"
    before = digest_of(frozen)
    rehash(forger.registration)
    edit_text(forger.registration / "record.toml", before, digest_of(frozen))
    rehash(forger.registration)
    forger.repoint().fit_decisions()


def lowered_and_frozen(forger: Forger) -> None:
    """Lower the bar, and freeze anew by authorities made for the occasion, now."""
    lowered(forger)
    forger.freeze_anew().repoint().fit_decisions()


def lowered_and_backdated(forger: Forger) -> None:
    """Lower the bar, freeze by authorities whose clocks lie, and have every run name that freeze."""
    lowered(forger)
    forger.freeze_anew(BEFORE).repoint().fit_specifications().fit_decisions()


def amendment(forger: Forger, dated: date) -> str:
    """Return an amendment that lowers the bar of H2a."""
    head = f"""[amendment]
id = "A1"
dated = "{dated}"
title = "Another bar"
seen = "Nothing."
reason = "The bar was high."
changes = ["The bar is lower."]
replaces = ["H2a"]

"""
    return head + lower(rule_of(forger.registration / "rules.toml")) + "\n"


def late_amendment(forger: Forger) -> None:
    forger.amend(amendment(forger, datetime.now(UTC).date())).repoint().fit_decisions()


def misdated_amendment(forger: Forger) -> None:
    """Date a late amendment before the runs; its tokens say when it was made."""
    early = amendment(forger, BEFORE.date())
    forger.amend(amendment(forger, datetime.now(UTC).date()))
    write_bytes(forger.registration / "amendments" / "A1.toml", early.encode())
    rehash(forger.registration)
    forger.repoint().fit_decisions()


def backdated_amendment(forger: Forger) -> None:
    """Have authorities made for the occasion say that an amendment came before the runs."""
    at = BEFORE + timedelta(minutes=49, seconds=50)
    forger.amend(amendment(forger, at.date()), at).repoint().fit_decisions()


def easier_registration(forger: Forger) -> None:
    """Have the manifest name another registration, with a lower bar, frozen before the runs, too."""
    easier = forger.registration.with_name("easier")
    shutil.copytree(forger.registration, easier)
    forger.registration = easier
    lowered(forger)
    edit_text(easier / "rules.toml", f'name = "{SMALL}"', 'name = "easier"')
    forger.freeze_anew(BEFORE).repoint().fit_decisions()


def other_anchor(forger: Forger) -> None:
    """Have a run's specification say that it was made under another freeze."""

    def change(rows: list[Row]) -> None:
        root = f"{SMALL} {'0' * 64}"
        before = rows[0]["specification"]
        start = before.index('"root":"') + len('"root":"')
        rows[0]["specification"] = before[:start] + root + before[before.index('"', start) :]

    forger.edit("runs", change).seal().fit_decisions()


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def cut_off(*names: str) -> Callable[[Forger], object]:
    """Return what drops the newest entries of a chain, with their evidence."""

    def cut(forger: Forger) -> None:
        later = [name for name in chained(forger.registration) if name.rpartition("/")[2][:-5] not in names]
        rehash(forger.registration, later)
        for name in names:
            for path in forger.registration.rglob(f"{name}.*"):
                path.unlink()
        forger.repoint()
        known = load_registration(forger.registration)
        text = known.rules + "".join(amendment.rules for amendment in known.amendments)
        kept = [row for row in forger.rows("decisions") if f"[rules.{row['rule']}]" in text]
        forger.write("decisions", kept)
        forger.seal().fit_decisions()

    return cut


def published_figure(forger: Forger) -> None:
    forger.set("evaluations", 10, successes=more(), observed_successes=more(), recovered=more()).seal()


def published_figure_and_source(forger: Forger) -> None:
    """Change a transcribed figure, and build the registers from what was changed."""
    source = forger.folder / "source"
    edit_text(source / "evaluations.csv", FIGURE, HIGHER)
    card = (forger.home.cards / "published.md").read_text(encoding="utf-8")
    build_published(source, forger.folder, card, registered.published_reference(forger.home))


MADE_BY_ANYBODY = "anybody can make a demonstration's authorities"


def figures_only(forger: Forger) -> None:
    """Drop every row behind the summaries, and say that there are none, as of published figures."""
    manifest = read_manifest(forger.folder)
    behind = {source for table in TABLES.values() for source in table.follows}
    behind |= {"decisions", "schedules", "launches", "steps", "adapters", "probe_indices"}
    tables = {name: entry for name, entry in manifest.tables.items() if name not in behind}
    gone = {file for name in behind & set(manifest.tables) for file in manifest.tables[name].files}
    for file in gone:
        (forger.folder / file).unlink()
    files = {file: entry for file, entry in manifest.files.items() if file not in gone}
    write_manifest(forger.folder, replace(manifest, evidence="summary", tables=tables, files=files))


REGISTRATIONS = (
    small("a rule edited", lowered, "rules.toml"),
    core("a rule edited, everything hashed anew", lowered_and_hashed, "freeze", "token", "registration"),
    core(
        "a rule edited, everything hashed and timestamped anew after the runs",
        lowered_and_frozen,
        "freeze",
        "root",
        "registration",
    ),
    small(
        "a rule edited, timestamped by clocks that lie, runs made to name that freeze",
        lowered_and_backdated,
        "groups",
        "probe",
        "registration",
    ),
    core("a late amendment lowers a bar", late_amendment, "A1", "amendment", "registration"),
    small("a late amendment is dated before the runs", misdated_amendment, "A1", "amendment", "registration"),
    small("a late amendment is timestamped by clocks that lie", backdated_amendment, limit=MADE_BY_ANYBODY),
    core("registers pointed at an easier registration", easier_registration, "easier", "registration"),
    small("a run's specification of another freeze", other_anchor, "specification"),
    Tampering("an amendment cut off, with what came later", LARGE, cut_off("A1", "D2"), ("A1", "probe")),
    Tampering(
        "the last deviation cut off",
        LARGE,
        cut_off("D2"),
        limit="how long a chain was, only those know who have seen it",
    ),
    core(
        "every row dropped, and the rest called published figures",
        figures_only,
        "published figures only",
        "no launch time",
    ),
    Tampering("a published figure", "published", published_figure, ("evaluations",), quick=True),
    Tampering(
        "a published figure and its source",
        "published",
        published_figure_and_source,
        limit="the authors' own rows are not here",
    ),
)
