"""From a signing certificate to a pinned one, at the token's own time (RFC 5280, section 6.1)."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from .certificate import Certificate, directory_name, relative_names, same_name
from .der import Node, shape
from .signature import check_signature
from .verdict import Refused

MAX_LENGTH = 8
# A crowd of namesakes would otherwise multiply into as many signatures as its product.
MAX_LINKS = 60

# Critical extensions whose meaning is known here. Policies bind nobody who asks for none (section 6.1.1 d).
_MEANINGS = (
    "basic_constraints key_usage extended_key_usage name_constraints subject_alt_name issuer_alt_name "
    "certificate_policies policy_mappings key_identifier authority_key_identifier"
)
_UNDERSTOOD = frozenset(_MEANINGS.split())
_OTHER_PURPOSES = frozenset({"server_auth", "client_auth", "code_signing", "email_protection"})
_CONSTRAINTS = shape("permitted? [0], excluded? [1]")
_SUBTREE = shape("base ANY, minimum? [0]p, maximum? [1]p")


def build_path(
    signer: Certificate, others: Sequence[Certificate], anchors: Sequence[Certificate], moment: datetime
) -> tuple[Certificate, ...]:
    """Find a path from a signing certificate to a pinned one that is valid at a moment."""
    search = _Search(others, anchors, moment)
    _check_itself(signer, moment)
    path = search.extend((signer,))
    if path is None:
        raise Refused(search.obstacle or _no_issuer(signer, anchors))
    return path


class _Search:
    def __init__(
        self, others: Sequence[Certificate], anchors: Sequence[Certificate], moment: datetime
    ) -> None:
        self._candidates = (*anchors, *(other for other in others if other not in anchors))
        self._anchors = anchors
        self._moment = moment
        self._links = 0
        self.obstacle = ""
        self._furthest = 0

    def extend(self, path: tuple[Certificate, ...]) -> tuple[Certificate, ...] | None:
        last = path[-1]
        issuers = [c for c in self._candidates if same_name(c.subject, last.issuer) and c not in path]
        if not issuers or len(path) == MAX_LENGTH:
            self._note(len(path), _no_issuer(last, self._anchors))
            return None
        for issuer in issuers:
            self._links += 1
            if self._links > MAX_LINKS:
                raise Refused("more certificates of one name than a chain has")
            try:
                if issuer not in self._anchors:
                    _check_purpose(issuer)
                _check_link(path, issuer, self._moment)
            except Refused as refused:
                self._note(len(path) + 1, refused.message)
                continue
            longer = (*path, issuer)
            whole = longer if issuer in self._anchors else self.extend(longer)
            if whole is not None:
                return whole
        return None

    def _note(self, length: int, message: str) -> None:
        if length >= self._furthest:
            self._furthest, self.obstacle = length, message


def check_unused(certificates: Iterable[Certificate], known: Sequence[Certificate]) -> list[str]:
    """Check that embedded certificates off the path, which are not relied on, are not altered."""
    notes = []
    for certificate in certificates:
        issuers = [other for other in known if other.subject == certificate.issuer]
        outcomes = [_is_signed_by(certificate, issuer) for issuer in issuers]
        if True in outcomes:
            continue
        if False in outcomes or any(_is_copy(certificate, other) for other in known):
            raise Refused(f"embedded certificate {certificate.name} was changed: nobody signed it so")
        notes.append(f"embedded certificate {certificate.name} is off the path and was not examined")
    return notes


def _is_copy(certificate: Certificate, other: Certificate) -> bool:
    """Whether two certificates that differ have in common what no two have."""
    return certificate != other and (
        certificate.signature == other.signature
        or (certificate.issuer, certificate.serial) == (other.issuer, other.serial)
        or (certificate.key, certificate.serial) == (other.key, other.serial)
    )


def _is_signed_by(certificate: Certificate, issuer: Certificate) -> bool | None:
    """Whether an issuer signed a certificate; None where the algorithm is too old to be checked here."""
    try:
        check_signature(
            issuer.key, certificate.signature_algorithm, certificate.signature, certificate.signed_part
        )
    except Refused as refused:
        return None if "weak" in refused.message else False
    return True


def _check_link(path: tuple[Certificate, ...], issuer: Certificate, moment: datetime) -> None:
    """Check that a certificate may stand above a path, and signed its last member."""
    _check_itself(issuer, moment)
    _check_authority(issuer, path)
    _check_names(issuer, path)
    last = path[-1]
    try:
        check_signature(issuer.key, last.signature_algorithm, last.signature, last.signed_part)
    except Refused as refused:
        raise Refused(f"certificate {last.name}, as issued by {issuer.name}: {refused.message}") from None


def _check_itself(certificate: Certificate, moment: datetime) -> None:
    if not certificate.is_valid_at(moment):
        is_over = moment > certificate.ends
        word, day = ("expired", certificate.ends) if is_over else ("begins", certificate.begins)
        raise Refused(
            f"certificate {certificate.name} is not valid at {moment:%Y-%m-%dT%H:%M:%SZ}, the token's time "
            f"({word} {day:%Y-%m-%d})"
        )
    unknown = certificate.critical - _UNDERSTOOD
    if unknown:
        names = ", ".join(sorted(unknown))
        raise Refused(
            f"certificate {certificate.name} has a critical extension that is not understood: {names}"
        )


def _check_purpose(issuer: Certificate) -> None:
    """Refuse an authority that was made for other things alone, such as one firm's web servers.

    What an authority may issue for is not the meaning that RFC 5280 gives to extended key usage, and some
    good ones name OCSP there; but who names nothing except these was constrained to them.
    """
    if issuer.purposes and _OTHER_PURPOSES.issuperset(issuer.purposes):
        raise Refused(
            f"certificate {issuer.name} may not issue for timestamping ({', '.join(issuer.purposes)})"
        )


def _check_authority(issuer: Certificate, path: tuple[Certificate, ...]) -> None:
    """Check that a certificate may issue; its own extended key usage says nothing of what it issues."""
    below = sum(not certificate.is_self_issued for certificate in path[1:])
    problems = (
        (not issuer.is_ca, "is no certificate authority"),
        (
            issuer.key_usage is not None and "key_cert_sign" not in issuer.key_usage,
            "may not sign certificates",
        ),
        (issuer.path_length is not None and below > issuer.path_length, "stands too high above the signer"),
    )
    for wrong, problem in problems:
        if wrong:
            raise Refused(f"certificate {issuer.name} {problem}")


def _check_names(issuer: Certificate, path: tuple[Certificate, ...]) -> None:
    """Check directory names against name constraints; constraints on other kinds of name are refused."""
    if issuer.name_constraints is None:
        return
    trees = issuer.name_constraints.fields(_CONSTRAINTS)
    permitted, excluded = (
        [tree.fields(_SUBTREE)["base"] for tree in trees[kind].children] if kind in trees else []
        for kind in ("permitted", "excluded")
    )
    for certificate in path:
        if certificate.is_self_issued and certificate is not path[0]:
            continue
        names = [directory_name(name) for name in certificate.alternative_names]
        kinds = {name.tag for name in certificate.alternative_names if directory_name(name) is None}
        if any(tree.tag in kinds for tree in (*permitted, *excluded)):
            raise Refused(f"certificate {issuer.name} constrains names in a way that is not understood")
        for name in (certificate.subject, *(name for name in names if name)):
            _check_directory_name(name, permitted, excluded, issuer)


def _check_directory_name(
    name: bytes, permitted: list[Node], excluded: list[Node], issuer: Certificate
) -> None:
    inside = [_is_below(name, base) for tree in permitted if (base := directory_name(tree)) is not None]
    outside = [_is_below(name, base) for tree in excluded if (base := directory_name(tree)) is not None]
    if (inside and not any(inside)) or any(outside):
        raise Refused(f"certificate {issuer.name} does not permit the names below it")


def _is_below(name: bytes, base: bytes) -> bool:
    """Whether a directory name begins with another, in whatever letters (RFC 5280, section 7.1)."""
    above, below = relative_names(base), relative_names(name)
    return below[: len(above)] == above


def _no_issuer(certificate: Certificate, anchors: Sequence[Certificate]) -> str:
    pinned = ", ".join(f"{a.name} ({a.sha256[:16]}…)" for a in anchors) or "none"
    return (
        f"does not lead to a pinned root (pinned: {pinned}): no certificate of "
        f"{certificate.issuer_name}, which issued {certificate.name}, at hand"
    )
