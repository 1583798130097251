"""Drafts to be frozen in tests, and authorities on loopback to freeze them with."""

import hashlib
import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.conftest import CHECKOUT
from tests.forge.server import Authority, OpensslAuthority
from tests.unit.decisions.rows_study import ROW_RULES
from tests.unit.decisions.study import rule
from toolkit.decisions.evaluation import check_not_vacuous
from toolkit.prereg.authority import Online, Source
from toolkit.prereg.demonstration import DemonstrationAuthority
from toolkit.prereg.evidence import write_certificates
from toolkit.prereg.freeze import Added, Draft, Frozen, add, freeze, open_draft, read_addition
from toolkit.prereg.record import Trusted, write_trust
from toolkit.prereg.registration import load_registration
from toolkit.prereg.verification import Reader, StudyRuns, Verification, verify_registration
from toolkit.rules.rulebook import load_rulebook
from toolkit.verification.decidable import check_entry

NAME = "small"
H = rule("H", "mean(gap) >= 0.03")
PATIENCE = 20.0
TODAY = str(datetime.now(UTC).date())


def write_draft(parent: Path, name: str = NAME, *, rules: str = ROW_RULES + H) -> Path:
    """Write a draft that can be frozen."""
    folder = parent / name
    folder.mkdir(parents=True)
    text = rules.replace('name = "small"', f'name = "{name}"')
    (folder / "rules.toml").write_bytes(text.encode())
    (folder / "protocol.md").write_bytes(b"# Protocol\n\nThe gap is at least 0.03.\n")
    return folder


def opened(folder: Path) -> Draft:
    """Open a draft as `toolkit freeze` does."""
    return open_draft(folder, lambda text: check_not_vacuous(load_rulebook(text)))


def trusted(server: Authority | OpensslAuthority, name: str, **facts: object) -> Trusted:
    """Return a trust file's entry for a server."""
    fingerprint = hashlib.sha256(server.root).hexdigest()
    known = {"operator": f"Operator of {name}", "address": server.url, "roots": (fingerprint,)} | facts
    return Trusted(name=name, **known)  # type: ignore[arg-type]


def source(
    server: Authority | OpensslAuthority, name: str, timeout_s: float = PATIENCE, **facts: object
) -> Online:
    """Return a server as an authority to ask."""
    return Online(trusted(server, name, **facts), (server.root,), timeout_s)


def freeze_with(folder: Path, *sources: Source, standing: str = "public") -> Frozen:
    """Freeze a draft; whoever is asked is known."""
    known = tuple(source.trusted for source in sources)
    return freeze(folder, opened(folder), sources, known, standing=standing)


def demonstrators() -> tuple[DemonstrationAuthority, ...]:
    return tuple(DemonstrationAuthority(f"Demonstration {label}") for label in "AB")


def demonstrate(folder: Path) -> tuple[DemonstrationAuthority, ...]:
    """Freeze a draft as a demonstration."""
    sources = demonstrators()
    freeze_with(folder, *sources, standing="demonstration")
    return sources


def verify(folder: Path, *known: Source | Trusted, studies: Sequence[StudyRuns] = ()) -> Verification:
    """Verify a registration as somebody who knows these authorities."""
    reader = Reader([getattr(each, "trusted", each) for each in known], datetime.now(UTC))
    return verify_registration(folder, reader, lambda _: studies)


def problems(verification: Verification) -> list[tuple[int, str]]:
    """Return the steps that did not pass, with their outcomes."""
    allowed = {"passed", "unproven"}
    return [(check.step, check.outcome) for check in verification.checks if check.outcome not in allowed]


def told(verification: Verification, step: int) -> str:
    """Return what the verification says of a step."""
    return "; ".join(check.detail for check in verification.checks if check.step == step)


def amendment(label: str = "A1", *, body: str = "", **facts: object) -> bytes:
    """Return an amendment file that raises the bar of H."""
    head = {
        "id": label,
        "dated": TODAY,
        "title": "A higher bar",
        "seen": "Nothing.",
        "reason": "The bar was low.",
        "changes": ["The bar is 0.05."],
        "replaces": ["H"],
    } | facts
    return _toml("amendment", head) + (body or rule("H", "mean(gap) >= 0.05")).encode()


def deviation(label: str = "D1", **facts: object) -> bytes:
    """Return a deviation file."""
    entry = {
        "id": label,
        "dated": TODAY,
        "kind": "deviation",
        "title": "A power cut",
        "text": "Seed 0 was started again.",
        "seen": "Nothing.",
        "concerns": ["H"],
    } | facts
    return _toml("deviation", entry)


def _toml(table: str, fields: Mapping[str, object]) -> bytes:
    """Return a table as TOML; JSON's strings, numbers and lists are TOML's."""
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in fields.items()]
    return "".join((f"[{table}]\n", *lines)).encode()


def add_to(
    folder: Path, content: bytes, *sources: Source, meanwhile: Callable[[Path], object] = lambda _: None
) -> Added:
    """Add an amendment or deviation; whoever is asked is known. Something may happen after it was read."""
    registration = load_registration(folder)
    path = folder.parent / "addition.toml"
    path.write_bytes(content)
    entry, raw = read_addition(registration, path)
    meanwhile(folder)
    known = tuple(source.trusted for source in sources)
    return add(registration, entry, raw, sources, known, check=lambda fresh: check_entry(fresh, entry))


class Scripted:
    """A source that does something before it answers; it counts what it is asked."""

    def __init__(self, source: Source, before: Callable[[], object] = lambda: None) -> None:
        self.source, self.before, self.asked = source, before, 0
        self.trusted, self.certificates = source.trusted, source.certificates

    def obtain(self, digest, verify, say):
        self.asked += 1
        self.before()
        return self.source.obtain(digest, verify, say)


def write_trust_file(path: Path, *entries: Trusted) -> Path:
    """Write a reader's trust file."""
    path.write_text(write_trust(entries, "Authorities on loopback."), encoding="utf-8")
    return path


def write_roots(path: Path, *servers: Authority | OpensslAuthority) -> Path:
    """Write servers' roots as PEM."""
    path.write_bytes(write_certificates(server.root for server in servers))
    return path


def is_untouched(folder: Path) -> bool:
    """Whether a draft has nothing of a freeze."""
    after = ("FROZEN.sha256", "LATER.chain", "record.toml", "trust.toml", "evidence")
    return not any((folder / name).exists() for name in after)


# Works in processes of its own, each of which ends as soon as it has renamed so many files within the
# registration itself. The last one ends by itself.
WORKER = """
import os, pickle, signal, sys
from tests.unit.prereg.drafts import add_to, amendment, freeze_with
import requests, rfc3161ng, z3  # once, for all

task, folders, sources, deaths = pickle.load(sys.stdin.buffer)
replace = os.replace

def work(folder):
    if task == "amend":
        add_to(folder, amendment(), *sources)
    else:
        freeze_with(folder, *sources)

for folder, death in zip(folders, deaths):
    child = os.fork()
    if child == 0:
        left = [death]

        def dying(here, there, **more):
            if ".pending" not in str(there):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
            return replace(here, there, **more)

        os.replace = dying
        work(folder)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def exit_codes(task: str, folders: list[Path], sources: Sequence[Online], deaths: list[int]) -> list[int]:
    """Freeze or amend folders in processes of their own, each to die after so many renames."""
    command, given = [sys.executable, "-c", WORKER], pickle.dumps((task, folders, sources, deaths))
    done = subprocess.run(command, cwd=CHECKOUT, input=given, stdout=subprocess.PIPE, check=True)
    return [int(line) for line in done.stdout.split()]
