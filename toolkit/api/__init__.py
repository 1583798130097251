"""What programs call: open a study, verify its registration, decide rules and explain them, freeze, import.

What others build on is public in `toolkit` (`toolkit.__all__`); the rest is what the commands share. Every
function takes a `home`, the folder with registers and registrations, and finds it where none is given. What
a caller has to know and no result says, such as that the Hub was not asked, is a warning of `logging`. A
failure is a `ToolkitError`, which says what to do.
"""

from toolkit.api.registrations import (
    check_draft,
    freeze,
    frozen_registrations,
    import_registers,
    import_table,
    verify,
    verify_frozen,
)
from toolkit.api.study import (
    attach_registration,
    decide,
    decide_all,
    decide_rules,
    explain,
    export,
    load_cases,
    open_case,
    open_study,
    published_reference,
    reference,
    registered_by,
    registration_of,
    rules_asked,
    studies,
    studies_here,
    usual_study,
    verify_registers,
)

__all__ = [
    "attach_registration",
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
