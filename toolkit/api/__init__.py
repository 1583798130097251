"""What programs call: open a study, verify its registration, decide rules and explain them, freeze, import.

What others build on is public in `toolkit` (`toolkit.__all__`); the rest is what the commands share. Every
function takes a `home`, the folder with registers and registrations, and finds it where none is given. What
a caller has to know and no result says, such as that the Hub was not asked, is a warning of `logging`. A
failure is a `ToolkitError`, which says what to do.
"""

from toolkit.api.by_name import (
    decide,
    decide_all,
    decide_rules,
    explain,
    load_cases,
    open_study,
    rules_asked,
    studies,
    studies_here,
    usual_study,
)
from toolkit.api.cases import (
    export,
    open_case,
    published_reference,
    reference,
    registered_by,
    registration_of,
    verify_registers,
)
from toolkit.api.importing import import_registers, import_table
from toolkit.api.registrations import (
    check_draft,
    freeze,
    frozen_registrations,
    verify,
    verify_frozen,
)

__all__ = [
    "check_draft",
    "decide",
    "decide_all",
    "decide_rules",
    "explain",
    "export",
    "freeze",
    "frozen_registrations",
    "import_registers",
    "import_table",
    "load_cases",
    "open_case",
    "open_study",
    "published_reference",
    "reference",
    "registered_by",
    "registration_of",
    "rules_asked",
    "studies",
    "studies_here",
    "usual_study",
    "verify",
    "verify_frozen",
    "verify_registers",
]
