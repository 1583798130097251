"""Every case by its name: a defect, or `valid: ` and what is unusual."""

from __future__ import annotations

from tests.forge.case import Case, Cases
from tests.forge.defects_chain import AUTHORITY, CHAIN, PURPOSE
from tests.forge.defects_content import IMPRINT, REQUEST, STRUCTURE
from tests.forge.defects_form import ENCODING, FORM, STATUS
from tests.forge.defects_signature import SIGNATURE
from tests.forge.defects_signer import CERTIFICATE_ID, SIGNED_ATTRIBUTES, SIGNER
from tests.forge.defects_time import KEEPS, REVOCATION, TIME
from tests.forge.valid import CHAINS, INFO, RESPONSES, SIGNING

__all__ = ["CASES", "CHECKS", "Case"]

GROUPS: tuple[tuple[str, Cases], ...] = (
    ("form", FORM),
    ("encoding", ENCODING),
    ("status", STATUS),
    ("structure", STRUCTURE),
    ("imprint", IMPRINT),
    ("request", REQUEST),
    ("signer", SIGNER),
    ("certificate_id", CERTIFICATE_ID),
    ("signed_attributes", SIGNED_ATTRIBUTES),
    ("signature", SIGNATURE),
    ("purpose", PURPOSE),
    ("chain", CHAIN),
    ("authority", AUTHORITY),
    ("time", TIME),
    ("revocation", REVOCATION),
)
CHECKS = {check: tuple(cases) for check, cases in GROUPS}
VALID = (RESPONSES, INFO, SIGNING, CHAINS, KEEPS)
_EVERY = (*(cases for _, cases in GROUPS), *VALID)
CASES: Cases = {name: build for cases in _EVERY for name, build in cases.items()}
if len(CASES) != sum(map(len, _EVERY)):
    raise ValueError("two cases have one name")
