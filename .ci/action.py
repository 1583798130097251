"""What the GitHub Action runs: verify registrations, decide rules, write a summary, annotate what failed.

Its inputs are environment variables, as `action.yml` sets them; GITHUB_WORKSPACE has prereg/ and registers/.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

INCOMPLETE = 3
MARKS = {"pass": "✅", "met": "✅", "partially_met": "🟡", "miss": "❌", "missed": "❌"}

_PARTS = ("where", "expected", "found", "remedy")

Row = dict[str, Any]


def main() -> int:
    """Run both commands and return the exit code: that of the first that failed."""
    said = {name: os.environ.get(name, "").strip() for name in ("REGISTRATION", "STUDY", "RULES", "REQUIRE")}
    home = Path(os.environ["GITHUB_WORKSPACE"])
    # Or, in a folder without any, the registrations that came with the package would be verified.
    os.environ["TOOLKIT_HOME"] = str(home)
    if (home / "prereg").is_dir():
        (home / "registers").mkdir(exist_ok=True)  # git keeps no empty folder
    study, require = _option("--study", said["STUDY"]), _option("--require", said["REQUIRE"])
    names = [said["REGISTRATION"]] if said["REGISTRATION"] else study
    codes = [_verify([*names, *require])]
    if said["STUDY"] or (not said["REGISTRATION"] and any((home / "registers").glob("*/MANIFEST.json"))):
        on_miss = ["--fail-on-miss"] if os.environ.get("FAIL_ON_MISS", "").lower() == "true" else []
        codes.append(_decide([*(said["RULES"].split() or ["--all"]), *study, *require, *on_miss]))
    return next((code for code in codes if code), 0)


def _verify(arguments: list[str]) -> int:
    code, rows = _toolkit("verify-prereg", arguments)
    lines = [(row["registration"], row["verdict"], row["standing"], row["existed_by"] or "") for row in rows]
    _summarize("Registrations", ("registration", "verdict", "standing", "existed by"), lines)
    for row in rows:
        wrong = [check for check in row["checks"] if check["outcome"] in {"failed", "missing"}]
        told = "\n".join(f"{check['step']}. {check['name']}: {check['detail']}" for check in wrong)
        gone = any(check["step"] == 1 for check in wrong) and _is_frozen(row["registration"])
        if row["verdict"] != "verified":
            level = "error" if gone or row["verdict"] == "not_verified" else "warning"
            _annotate(level, f"{row['registration']}: {row['verdict']}", told)
            code = 1 if gone else code
    # What is missing elsewhere is not wrong; whoever requires a standing is told so by exit code 1.
    return 0 if code == INCOMPLETE and rows else code


def _is_frozen(registration: str) -> bool:
    return Path(os.environ["TOOLKIT_HOME"], "prereg", registration, "FROZEN.sha256").exists()


def _decide(arguments: list[str]) -> int:
    code, rows = _toolkit("decide", arguments)
    short = [
        {key: row[key] for key in ("study", "rule", "title", "verdict")}
        | {"standing": row["registration"]["standing"], "exploratory": row.get("is_exploratory", False)}
        for row in rows
    ]
    _append("GITHUB_OUTPUT", f"verdicts={json.dumps(short)}\n")
    headings = ("study", "rule", "title", "verdict", "registration stands on")
    _summarize(
        "Verdicts",
        headings,
        [(r["study"], r["rule"], r["title"], _marked(r), r["standing"]) for r in short],
    )
    for row in rows:
        lost = [c["text"] for c in row["criteria"] if c["holds"] is False and _binds(c, row)]
        counts = row["kind"] != "gate" and row["verdict"] != "superseded" and not row.get("is_exploratory")
        if "--fail-on-miss" in arguments and lost and counts:
            _annotate("error", f"{row['study']}, {row['rule']}: {row['verdict']}", "\n".join(lost))
    return code


def _marked(row: Row) -> str:
    exploratory = " (exploratory, binds nothing)" if row["exploratory"] else ""
    mark = "" if exploratory else MARKS.get(row["verdict"], "")
    return f"{mark} {row['verdict']}{exploratory}".strip()


def _binds(criterion: Row, row: Row) -> bool:
    return criterion.get("reading") in (None, row.get("binding_reading"))


def _toolkit(command: str, arguments: list[str]) -> tuple[int, list[Row]]:
    """Run a command, and return its exit code and its rows; an error that it tells is annotated."""
    done = subprocess.run(
        ["toolkit", command, *arguments, "--json"], capture_output=True, text=True, check=False
    )
    print(done.stderr, file=sys.stderr, end="")
    document = json.loads(done.stdout or "[]")
    _, is_told, error = done.stderr.partition("error: ")
    if isinstance(document, dict):
        told = document["error"]
        parts = (told["problem"], *(f"{name}: {told[name]}" for name in _PARTS if told.get(name)))
        _annotate("error", f"toolkit {command}", "\n".join(map(str, parts)))
    elif is_told:
        _annotate("error", f"toolkit {command}", error.strip())
    return done.returncode, document if isinstance(document, list) else []


def _summarize(title: str, headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    lines = [headings, tuple("---" for _ in headings), *rows]
    table = "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)
    _append("GITHUB_STEP_SUMMARY", f"### {title}\n\n{table}\n\n")


def _cell(text: str) -> str:
    return (
        " ".join(text.split())
        .replace("\\", "\\\\")
        .replace("|", "\\|")
        .replace("<", "&lt;")
        .replace("`", "\\`")
    )


def _annotate(level: str, title: str, message: str) -> None:
    """Write a workflow command; characters that would end it are escaped."""
    title, message = (
        text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A") for text in (title, message)
    )
    title = title.replace(":", "%3A").replace(",", "%2C")
    print(f"::{level} title={title}::{message}", flush=True)


def _option(name: str, value: str) -> list[str]:
    return [name, value] if value else []


def _append(variable: str, text: str) -> None:
    with Path(os.environ[variable]).open("a", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main())
