"""Check and run pre-registered reinforcement-learning studies.

What is public is in `__all__`; it is loaded when it is used.

Examples:
    >>> import toolkit
    >>> study = toolkit.open_study("published")
    >>> toolkit.decide("H2a", study).verdict
    'miss'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit import estimators
    from toolkit.cases import Study, decide, decide_all, explain, import_table, open_study, studies
    from toolkit.decisions.case import Explanation
    from toolkit.decisions.decision import Decision
    from toolkit.errors import (
        DamagedError,
        IncompleteError,
        RuleError,
        ToolkitError,
        UsageError,
        VerificationError,
    )
    from toolkit.noise import trainers as pairing
    from toolkit.places import Home
    from toolkit.prereg.freeze import Frozen
    from toolkit.prereg.verification import Verification
    from toolkit.registrations import freeze, verify

__version__ = "0.1.0"

__all__ = [
    "DamagedError",
    "Decision",
    "Explanation",
    "Frozen",
    "Home",
    "IncompleteError",
    "RuleError",
    "Study",
    "ToolkitError",
    "UsageError",
    "Verification",
    "VerificationError",
    "__version__",
    "decide",
    "decide_all",
    "estimators",
    "explain",
    "freeze",
    "import_table",
    "open_study",
    "pairing",
    "studies",
    "verify",
]

if not TYPE_CHECKING:  # a type checker reads the imports above
    _PLACES = {
        "Decision": "decisions.decision",
        "Explanation": "decisions.case",
        "Frozen": "prereg.freeze",
        "Home": "places",
        "Verification": "prereg.verification",
        "freeze": "registrations",
        "verify": "registrations",
    }

    def __getattr__(name: str) -> Any:
        """Return what is public; what it needs is imported now."""
        if name in {"estimators", "pairing"}:
            return import_module(f"{__name__}.{name}")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        place = _PLACES.get(name, "errors" if name.endswith("Error") else "cases")
        return getattr(import_module(f"{__name__}.{place}"), name)

    def __dir__() -> list[str]:
        """Return the public names, loaded or not."""
        return sorted(__all__)
