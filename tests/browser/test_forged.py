"""A forged page is caught by opening it, from a folder and over http; the honest one passes."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page

from toolkit.site.checking import MARK

PAGE, STUDY = "embedded/H2a.html", "embedded"
EVALUATIONS = "evaluations/train-00000-of-00001.parquet"
DECISIONS = "decisions/train-00000-of-00001.parquet"


class Copy:
    """A page with all that it reads, in a folder of its own, to be forged."""

    def __init__(self, site: Path, folder: Path) -> None:
        self.folder = folder
        scripts = [f"{STUDY}/{table}/*" for table in ("evaluations", "decisions", "runs")]
        scripts += [STUDY, f"registrations/{STUDY}"]
        for pattern in (PAGE, MARK, "*.js", "style.css", *(f"data/{name}.js" for name in scripts)):
            for path in site.glob(pattern):
                target = folder / path.relative_to(site)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)

    def page(self, old: str, new: str) -> None:
        """Change a text of the page."""
        self._write(PAGE, self._read(PAGE).replace(old, new), old)

    def said(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change what the page says to its script."""
        block = re.compile(r'(class="decide-evidence">)(.*?)(</script>)', re.DOTALL)
        document = json.loads(block.search(self._read(PAGE))[2])  # type: ignore[index]
        change(document)
        text = json.dumps(document).replace("<", "\\u003c")
        self._write(PAGE, block.sub(lambda match: f"{match[1]}{text}{match[3]}", self._read(PAGE)))

    def script(self, name: str, change: Callable[[Any], Any]) -> None:
        """Change what a script leaves."""
        text = self._read(f"data/{name}.js")
        head, _, value = text.partition("]=")
        changed = json.dumps(change(json.loads(value.rstrip().removesuffix(";"))))
        self._write(f"data/{name}.js", f"{head}]={changed};\n")

    def rows(self, file: str, change: Callable[[list[dict[str, Any]]], None]) -> str:
        """Change rows of a register; returns the new file's SHA-256."""
        digest = ""

        def changed(held: str) -> str:
            nonlocal digest
            table = pq.read_table(io.BytesIO(base64.b64decode(held)))
            rows = table.to_pylist()
            change(rows)
            sink = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), sink, compression="zstd")
            digest = hashlib.sha256(sink.getvalue()).hexdigest()
            return base64.b64encode(sink.getvalue()).decode()

        self.script(f"{STUDY}/{file.removesuffix('.parquet')}", changed)
        return digest

    def manifest(self, change: Callable[[dict[str, Any]], None], *, sealed: bool = False) -> None:
        """Change the manifest, and what lists its files; with a new seal where somebody is thorough."""

        def changed(catalogue: dict[str, Any]) -> dict[str, Any]:
            manifest = json.loads(catalogue["manifest"])
            change(manifest)
            if sealed:
                del manifest["seal"]
                canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
                manifest["seal"] = hashlib.sha256(canonical.encode()).hexdigest()
            for table in catalogue.get("tables", {}).values():
                for file in table["files"]:
                    file["sha256"] = manifest["files"][file["file"]]["sha256"]
            return {**catalogue, "manifest": json.dumps(manifest)}

        self.script(STUDY, changed)

    def frozen(self, name: str, change: Callable[[bytes], bytes]) -> None:
        """Change a file of the registration."""

        def changed(files: dict[str, str]) -> dict[str, str]:
            before = base64.b64decode(files[name])
            assert change(before) != before
            return {**files, name: base64.b64encode(change(before)).decode()}

        self.script(f"registrations/{STUDY}", changed)

    def _read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def _write(self, name: str, text: str, old: str = "") -> None:
        assert old in self._read(name)
        (self.folder / name).write_text(text, encoding="utf-8")


def two_more(rows: list[dict[str, Any]]) -> None:
    """Add two successes to the last curve's point of the first paired seed."""
    (row,) = (
        r
        for r in rows
        if (r["run_id"], r["regime"], r["step"]) == ("c2-paired-s0", "faults_p025", 100)
        and r["phase"] == "periodic"
    )
    row["successes"] += 2


def passed(document: dict[str, Any]) -> None:
    document["recorded"]["H2a"]["verdict"] = "pass"


def passed_in_the_register(rows: list[dict[str, Any]]) -> None:
    (row,) = (row for row in rows if row["rule"] == "H2a")
    row["verdict"] = "pass"


def rows_and_hash(
    file: str, change: Callable[[list[dict[str, Any]]], None], *, sealed: bool
) -> Callable[[Copy], None]:
    """Return what changes rows, and has the manifest name the changed file."""

    def forged(copy: Copy) -> None:
        digest = copy.rows(file, change)
        copy.manifest(lambda m: m["files"][file].update(sha256=digest), sealed=sealed)

    return forged


def page(old: str, new: str) -> Callable[[Copy], None]:
    """Return what changes a text of the page."""
    return lambda copy: copy.page(old, new)


def frozen(name: str, change: Callable[[bytes], bytes]) -> Callable[[Copy], None]:
    """Return what changes a file of the registration."""
    return lambda copy: copy.frozen(name, change)


def verdict_changed_everywhere(copy: Copy) -> None:
    copy.page(*VERDICT)
    copy.said(passed)


VERDICT = [f'data-shown="verdict"><span class="verdict {words}' for words in ('bad">miss', 'good">pass')]
EVIDENCE = "evidence/freeze.demonstration-a.tsr"
DIGEST = r"\w{64}"
# What is forged → how, the step that finds it, and its words.
CAUGHT: dict[str, tuple[Callable[[Copy], object], str, str]] = {
    "row": (
        lambda copy: copy.rows(EVALUATIONS, two_more),
        "files",
        f"expected SHA-256 {DIGEST}, found {DIGEST}",
    ),
    "row and hash": (
        rows_and_hash(EVALUATIONS, two_more, sealed=False),
        "manifest",
        f"The manifest's seal: expected {DIGEST}, found {DIGEST}",
    ),
    "row, hash and seal": (
        rows_and_hash(EVALUATIONS, two_more, sealed=True),
        "rows",
        r"The value of \w+: \S+ here, \S+ recorded",
    ),
    "verdict shown": (page(*VERDICT), "rows", "The verdict shown: expected miss, found pass"),
    "verdict everywhere": (verdict_changed_everywhere, "rows", "The verdict: miss here, pass recorded"),
    "decision in the register": (
        rows_and_hash(DECISIONS, passed_in_the_register, sealed=True),
        "rows",
        "H2a in the register of decisions: expected pass, found miss",
    ),
    "verdict where no script looks": (
        page('<span data-shown="verdict">', "<span>"),
        "rows",
        r"expected \[data-shown=\"verdict\"\], found no such element",
    ),
    "estimate shown": (
        page('data-shown="estimate">-0.0', 'data-shown="estimate">+0.0'),
        "rows",
        r"The estimate shown: expected -0\.0\d+, found \+0\.0\d+",
    ),
    "a seed's value": (
        page('data-endpoint="c2_auc" data-seed="0">-0.0', 'data-endpoint="c2_auc" data-seed="0">+0.0'),
        "rows",
        r"c2_auc of seed 0 shown: expected -0\.0\d+, found \+0\.0\d+",
    ),
    "hash shown": (
        page('data-hash="rows">', 'data-hash="rows">0'),
        "manifest",
        f"The hash shown of rows: expected {DIGEST}, found 0{DIGEST}",
    ),
    "threshold": (
        frozen("rules.toml", lambda raw: raw.replace(b"mean(c2_auc) >= 0.03", b"mean(c2_auc) >= 0.01")),
        "registration",
        rf"SHA-256 of rules\.toml: expected {DIGEST}, found {DIGEST}",
    ),
    "threshold shown": (
        page("mean(c2_auc) &gt;= 0.03", "mean(c2_auc) &gt;= 0.01"),
        "registration",
        r"The test mean: expected .*0\.03, found .*0\.01",
    ),
    "list of frozen files": (
        frozen("FROZEN.sha256", lambda raw: raw[:1].swapcase() + b"0" + raw[2:]),
        "registration",
        rf"FROZEN\.sha256: expected {DIGEST}, found {DIGEST}",
    ),
    "chain": (
        frozen("LATER.chain", lambda raw: b"0" + raw[1:] if raw[:1] != b"0" else b"1" + raw[1:]),
        "registration",
        rf"record\.toml in LATER\.chain: expected {DIGEST}, found {DIGEST}",
    ),
    "token": (frozen(EVIDENCE, lambda raw: raw[:-9] + bytes([raw[-9] ^ 1]) + raw[-8:]), "tokens", "."),
}


def steps(page: Page, address: str) -> dict[str, tuple[str, str]]:
    """Open a page, and return how each step came out, with its words."""
    page.goto(address)
    page.locator(".proof[data-state]").wait_for(timeout=60_000)
    return {
        item.get_attribute("data-step"): (
            item.get_attribute("data-state"),
            item.locator(".says").inner_text(),
        )
        for item in page.locator(".chain li").all()
    }


def test_the_honest_page_passes_every_step(open_page, root) -> None:
    found = steps(open_page(), root + PAGE)
    assert [state for state, _ in found.values()] == ["good"] * 5
    assert "No token covers it" in found["manifest"][1]


@pytest.mark.parametrize("forged", CAUGHT)
def test_a_forged_page_is_caught_by_opening_it(open_page, site, tmp_path, forged) -> None:
    forge, step, words = CAUGHT[forged]
    copy, opened = Copy(site.folder, tmp_path), open_page()
    forge(copy)
    state, says = steps(opened, (copy.folder / PAGE).as_uri())[step]
    assert state == "bad"
    assert re.search(words, says), says
    assert step in opened.locator(".proof").inner_text()
    assert opened.locator(".proof").get_attribute("data-state") == "bad"


def test_a_study_without_rows_of_its_own_goes_through_the_same_steps(open_page, site) -> None:
    found = steps(open_page(), site.url("published/H2a.html"))
    assert [found[step][0] for step in ("files", "rows", "manifest", "registration")] == ["good"] * 4
