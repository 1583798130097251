"""Every case by its name: a defect, or `valid: ` and what is unusual."""

from collections.abc import Callable
from functools import partial

from tests.forge.case import Case, Cases, Made, refused, verified
from tests.forge.defects_chain import AUTHORITY, CHAIN, PURPOSE
from tests.forge.defects_content import IMPRINT, REQUEST, STRUCTURE
from tests.forge.defects_form import ENCODING, FORM, STATUS
from tests.forge.defects_signature import SIGNATURE
from tests.forge.defects_signer import CERTIFICATE_ID, SIGNED_ATTRIBUTES, SIGNER
from tests.forge.defects_time import KEEPS, REVOCATION, TIME
from tests.forge.valid import CHAINS, INFO, RESPONSES, SIGNING

__all__ = ["CASES", "CHECKS", "Case"]


def _built(judged: Callable[[Made], Case], make: Callable[[], Made]) -> Case:
    return judged(make())


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
_TABLES = (
    *((partial(refused, check), cases) for check, cases in GROUPS),
    *((verified, cases) for cases in VALID),
)
CASES: dict[str, Callable[[], Case]] = {
    name: partial(_built, judged, make) for judged, cases in _TABLES for name, make in cases.items()
}
if len(CASES) != sum(len(cases) for _, cases in _TABLES):
    raise ValueError("two cases have one name")
