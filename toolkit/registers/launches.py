"""What the runs of a study were launched with, and when first."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from toolkit.registers.arrow import Row
from toolkit.registers.study import Study


def specification_document(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row of `runs` says of its specification; nothing where that is no JSON object."""
    try:
        document = json.loads(run.get("specification") or "{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def launched_runs(study: Study) -> list[Row]:
    """Return the rows of `runs`, each with the moment of its first launch.

    That stands in its own row, or in the first of its launches where a study lists them: a run that was cut
    off was begun when it was launched first, whatever was launched later.
    """
    first: dict[str, datetime] = {}
    for launch in study.rows("launches") if study.has("launches") else ():
        run_id, at = launch["run_id"], launch["launched_at"]
        first[run_id] = min(first.get(run_id, at), at)
    return [
        {**run, "launched_at": first.get(run["run_id"], run.get("launched_at"))} for run in study.rows("runs")
    ]
