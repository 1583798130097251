"""The runs of a registration as it specifies them: what the rows of a study have to have been made by."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

from toolkit.errors import DamagedError, IncompleteError
from toolkit.lab.play.matrix import Selection, specify
from toolkit.prereg.evidence import anchor
from toolkit.prereg.registration import Registration
from toolkit.rules.rulebook import RuleBook
from toolkit.specification import Specification

MOST_NAMES = 5
_PLACE = ("run_id", "condition", "arm", "seed", "role", "scale_rewards")


class RegisteredRuns:
    """The specifications that a registration gives its runs.

    Args:
        registration: the registration; None where runs belong to none.
        book: its rules.
    """

    def __init__(self, registration: Registration | None, book: RuleBook | None) -> None:
        self._root = ""
        self._runs: dict[str, Specification] = {}
        if registration is None or book is None:
            return
        tiers = tuple({cell.tier for cell in book.plan.cells if cell.regime})
        if tiers:
            # The standing says that a token is missing; all but the root of the seeds can be compared.
            with suppress(IncompleteError):
                self._root = anchor(registration)
            named = (registration.name, self._root)
            runs = specify(book.plan, named, {}, Selection(tiers=tiers))
            self._runs = {run.run_id: run for run in runs}

    def place(self, run: str) -> dict[str, Any]:
        """Return what a run's row says of its place in the matrix; nothing of one that is not registered."""
        registered = self._runs.get(run)
        return {} if registered is None else {name: getattr(registered, name) for name in _PLACE}

    @property
    def are_played(self) -> bool:
        """Whether the registration says all that playing its runs takes."""
        return bool(self._runs)

    def specification(self, run: str, stored: str | None) -> Specification | None:
        """Return the specification that the registration gives a run."""
        if not self._runs or (stored is None and run not in self._runs):
            return None
        if run not in self._runs:
            raise DamagedError(
                f"{run} is no run of the registered matrix",
                expected=", ".join(list(self._runs)[:MOST_NAMES]),
                where="runs",
                remedy="the registers belong to another registration, or to none",
            )
        claimed = self._document(run, stored)
        registered = self._runs[run]
        if not registered.world:
            registered = replace(registered, pools=claimed.get("pools", {}))
        return registered if self._root else replace(registered, root=str(claimed.get("root")))

    def _document(self, run: str, stored: str | None) -> dict[str, Any]:
        try:
            document = json.loads(stored or "{}")
            if isinstance(document, dict) and isinstance(document.get("pools", {}), dict):
                return document
        except (ValueError, RecursionError):
            pass
        raise DamagedError(f"the specification of {run} is none", found=str(stored)[:80], where="runs")
