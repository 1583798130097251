"""A home in which every text that somebody else wrote is an attack on the page that shows it."""

import itertools
import shutil
from pathlib import Path
from typing import Any

from tests.conftest import CHECKOUT
from tests.registrations import chained, rehash
from toolkit.prereg.registration import load_registration
from toolkit.registers.columns import Column, Type
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.schema import TABLES
from toolkit.registers.study import open_study
from toolkit.registers.writer import rows_files, write_study

# Whatever runs sets it; no page may.
CANARY = "canary"
RUN = f"window.{CANARY} = 1"
ATTACKS = (
    f"<script>{RUN}</script>",
    f'"><img src=x onerror="{RUN}">',
    f"</script><script>{RUN}</script>",
    f"--><svg onload='{RUN}'>",
    f"' onmouseover='{RUN}' autofocus onfocus='{RUN}",
    f"javascript:{RUN}",
    f"[link](javascript:{RUN}) ![x](https://example.org/x.png) <b>",
    "{{ 7 * 7 }} {% raw %} ${7*7} \\u003cscript\\u003e",
    "</title></style></textarea></pre></code><base href='https://example.org/'>",
    "\u202eright to left\u202c \u2028 \u2029 \ufeff \u0085",
    "control \x00\x01\x08\x0b\x1b[31m\x7f characters",
    "=HYPERLINK(0)\t\r\n| a | b |",
    "wide" * 25_000,
)
# A run that wants to be a page elsewhere.
RUN_ID = f"../../../up/<img src=x onerror={RUN}>\"'&?#%2e%2e%00\\..\\"
# What names and joins rows, and what the rules ask for, stays: with it nothing could be decided.
KEPT = {"run_id", "condition", "arm", "trajectory", "task_id", "endpoint", "policy", "pool", "target"}
AMENDMENT = "amendments/A2.toml"


def hostile_home(folder: Path) -> Path:
    """Write a home with one study and one registration, and return it."""
    registration = folder / "prereg" / "paired-rollouts"
    shutil.copytree(CHECKOUT / "prereg" / "paired-rollouts", registration)
    attacks = itertools.cycle(ATTACKS)
    _poison_registration(registration, attacks)
    study = open_study(CHECKOUT / "registers" / "published")
    rows = {table.name: study.rows(table.name) for table in study.tables}
    victim = rows["runs"][-1]["run_id"]
    loaded = load_registration(registration)
    write_study(
        folder / "registers" / "published",
        study="published",
        evidence="summary",
        registration=RegistrationRef(
            loaded.name, loaded.sha256, {change.id: change.sha256 for change in loaded.amendments}
        ),
        files=rows_files(
            {
                name: [
                    {
                        column: _poisoned(TABLES[name].column(column), value, victim, attacks)
                        for column, value in row.items()
                    }
                    for row in listed
                ]
                for name, listed in rows.items()
            }
        ),
        documents={},
    )
    return folder


def _poisoned(column: Column, value: Any, victim: object, attacks: Any) -> Any:
    if column.name == "run_id" and value == victim:
        return RUN_ID
    is_free = column.type is Type.STRING and column.choices is None and column.name not in KEPT
    return f"{next(attacks)}" if is_free and value is not None else value


def _poison_registration(folder: Path, attacks: Any) -> None:
    """Have amendments and deviations attack, under hashes that say that they always did."""
    quoted = [_toml(text) for text in ATTACKS]
    (folder / AMENDMENT).write_text(
        f'[amendment]\nid = "A2"\ndated = "2027-01-02"\ntitle = {quoted[0]}\nseen = {quoted[1]}\n'
        f'reason = {quoted[2]}\nchanges = [{", ".join(quoted)}]\nadds = ["N1"]\nnote = {quoted[6]}\n'
        f'[rules.N1]\nkind = "prediction"\ntitle = {quoted[3]}\ntext = {quoted[12]}\n'
        f'[[rules.N1.criteria]]\nid = "a"\ntext = {quoted[1]}\ntest = "mean(c2_auc) >= 0.02"\n',
        encoding="utf-8",
    )
    for path in sorted((folder / "deviations").glob("*.toml")):
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text(
            "".join(
                f"{key} = {_toml(next(attacks))}\n"
                if (key := line.partition(" = ")[0]) in ("title", "text")
                else f"{line}\n"
                for line in lines
            ),
            encoding="utf-8",
        )
    rehash(folder, [*chained(folder), AMENDMENT])


def _toml(text: str) -> str:
    """Return a text as TOML has it on one line."""
    return '"' + "".join(c if c.isalnum() else f"\\U{ord(c):08x}" for c in text) + '"'
