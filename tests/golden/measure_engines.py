"""Ask several engines about the same tokens: writes `engines.json`, and prints the tables of the README.

Run as `python -m tests.golden.measure_engines`; it needs rfc3161-client, rfc3161ng and `openssl`.

Every engine gets whatever it can take, as its own documentation says:

- `toolkit`: everything.
- `openssl`: `ts -verify` with the document or its digest, the roots (with `-partial_chain`, so that a pinned
  intermediate counts) and what is archived beside the token as `-untrusted`. Where there is a request, it is
  asked again with `-queryfile`, and must accept both. A revocation list stands with the roots, for
  `-crl_check`; several for `-crl_check_all`.
- `rfc3161-client`: its verifier with the roots, the signer, the request's nonce and policy; of what is
  archived nothing self-signed, which it would trust. It reads responses: a bare token is put into one.
- `rfc3161ng`: `check_response`, or `check` for a bare token, with the signer's certificate pinned, the digest
  and the nonce. The certificate is the honest signer's for a crafted defect, the token's own otherwise.

A case that turns on an input which an engine has no notion of is not asked of it: a revocation list (openssl
with `-attime` takes one issued later for "not yet valid"), a list of policies, another present; for openssl a
signer that is pinned; for rfc3161ng roots, what stands between them and the pinned signer, and a signer that
is not at hand. A crash counts as a rejection, and is counted apart.

Crafted tokens are those of `tests/vectors/tokens.jsonl.gz`.
"""

import json
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from asn1crypto import pem
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from pyasn1.error import PyAsn1Error

from tests.forge import der
from tests.forge.keys import digest
from tests.forge.token import NOW
from tests.forge.vectors import FORGED, USUAL, by_check
from tests.unit.prereg.test_real_tokens import MISSING, PRESENT, read_real
from toolkit.prereg.evidence import write_certificates
from toolkit.prereg.token.certificate import read_certificate
from toolkit.prereg.token.timestamp import granted_token, read_timestamp
from toolkit.prereg.token.verdict import Refused
from toolkit.prereg.token.verify import Material, verify_token

FILE = Path(__file__).with_name("engines.json")
PATIENCE_S = 20
ROOTS = FORGED[USUAL].material.roots
_EMBEDDED = read_timestamp(granted_token(FORGED[USUAL].token)[0]).certificates
(SIGNER,) = (raw for raw in _EMBEDDED if b"Forge Stamper A" in read_certificate(raw).subject)
OPENSSL, GIVEN_TIME = "openssl ts -verify", "openssl ts -verify -attime genTime"
# What a case may turn on that an engine has no place for: always, and where the case is a defect; what makes
# a token good is given to every engine in its own way.
_OUTSIDE = {"crls", "policy", "policies", "at"}
LACKS: dict[str, tuple[set[str], set[str]]] = {
    "toolkit": (set(), set()),
    OPENSSL: (_OUTSIDE - {"crls"}, {"signer"}),
    GIVEN_TIME: (_OUTSIDE, {"signer"}),
    "rfc3161-client": (_OUTSIDE - {"policy"}, set()),
    "rfc3161ng": (_OUTSIDE, {"untrusted", "roots", "chain", "missing"}),
}
COLUMNS = "| engine | good real rejected | bad real accepted | good crafted rejected | bad crafted accepted "
COLUMNS += "| not asked | crashes |"
_GEN_TIME = re.compile(rb"\x18.(\d{14})(?:\.\d+)?Z")


@dataclass(frozen=True)
class Question:
    """A token, what is given beside it, and whether it is good."""

    name: str
    group: str  # the check that must find the defect; "valid"; for real ones "real"
    valid: bool
    token: bytes
    material: dict[str, Any]
    at: datetime
    turns_on: str | None = None

    @property
    def is_bare(self) -> bool:
        """A token without a response round it begins with an object identifier."""
        return len(self.token) > 4 and self.token[len(der.header(self.token)) :][:1] == b"\x06"

    @property
    def gen_time(self) -> datetime | None:
        for found in _GEN_TIME.finditer(self.token):
            try:
                return datetime.strptime(found[1].decode(), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
            except ValueError:
                continue
        return None

    def digest(self, algorithm: str) -> bytes:
        document = self.material.get("document")
        return self.material["digest"][1] if document is None else digest(algorithm, document)

    def inputs(self) -> set[str]:
        """Return what a case turns on beyond a token, its document and the usual root."""
        given = {name for name in ("crls", "signer", "untrusted") if self.material.get(name)}
        if policies := self.material.get("policies"):
            given.add("policy" if len(policies) == 1 else "policies")
        if self.turns_on:
            given.add(self.turns_on)
        if self.group == "real":
            return given - {"untrusted", "signer"}
        if self.at != NOW:
            given.add("at")
        if self.material["roots"] != ROOTS:
            given.add("roots")
        if self.group == "chain" and SIGNER in self.token:
            given.add("chain")
        return given


# The tokens


def real_tokens() -> list[Question]:
    """Return the real tokens; none where they are missing."""
    questions = []
    for one in read_real().values():
        turns_on = "roots" if one.why.startswith("untrusted") else None
        questions.append(Question(one.name, "real", one.valid, one.token, one.material, PRESENT, turns_on))
    return questions


def crafted_tokens() -> list[Question]:
    """Return the forged tokens."""
    questions = []
    for name, vector in FORGED.items():
        turns_on = "missing" if vector.verdict.verdict == "incomplete" else None
        group = vector.verdict.failed_check or "valid"
        given = {what: value for what, value in vars(vector.material).items() if value is not None}
        question = Question(name, group, group == "valid", vector.token, given, vector.at, turns_on)
        questions.append(question)
    return questions


def signer_of(question: Question) -> bytes | None:
    """Return the certificate of the token's signer, as somebody would have it from the authority."""
    if question.material.get("signer"):
        return question.material["signer"]
    if not question.valid and question.group != "real":
        return SIGNER
    try:
        stated = read_timestamp(granted_token(question.token)[0])
        for raw in (*stated.certificates, *question.material.get("untrusted", ())):
            one = read_certificate(raw)
            names = (der.seq(one.issuer, der.integer(one.serial)), der.tlv(0x80, one.key_identifier or b""))
            if stated.signer_id.der in names:
                return raw
    except (Refused, ValueError):
        pass
    return None


# The engines: True where the token is accepted; what they raise is sorted out by `ask`.


def by_toolkit(question: Question) -> bool:
    return verify_token(question.token, Material(**question.material), question.at).verdict == "verified"


def _openssl(question: Question, *, at_gen_time: bool) -> bool:
    given = question.material
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.joinpath("token").write_bytes(question.token)
        lists = b"".join(pem.armor("X509 CRL", one) for one in given.get("crls", ()))
        folder.joinpath("roots.pem").write_bytes(write_certificates(given["roots"]) + lists)
        command = ["openssl", "ts", "-verify", "-in", "token", "-CAfile", "roots.pem", "-partial_chain"]
        if at_gen_time and (moment := question.gen_time):
            command += ["-attime", str(int(moment.timestamp()))]
        command += ["-token_in"] if question.is_bare else []
        if lists:
            command.append("-crl_check_all" if len(given["crls"]) > 1 else "-crl_check")
        if untrusted := (*given.get("untrusted", ()), *filter(None, [given.get("signer")])):
            folder.joinpath("untrusted.pem").write_bytes(write_certificates(untrusted))
            command += ["-untrusted", "untrusted.pem"]
        if given.get("document") is None:
            ways = [["-digest", question.digest("").hex()]] if given.get("digest") else []
        else:
            folder.joinpath("document").write_bytes(given["document"])
            ways = [["-data", "document"]]
        if given.get("request") is not None:
            folder.joinpath("request").write_bytes(given["request"])
            ways.append(["-queryfile", "request"])
        return bool(ways) and all(_agrees([*command, *way], folder) for way in ways)


def _agrees(command: list[str], folder: Path) -> bool:
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=PATIENCE_S)
    if done.returncode < 0:
        raise RuntimeError(f"openssl was ended by signal {-done.returncode}")
    return done.returncode == 0 and b"Verification: OK" in done.stdout


def by_rfc3161_client(question: Question) -> bool:
    import rfc3161_client as client
    from rfc3161_client import _rust

    given = question.material
    load = x509.load_der_x509_certificate
    roots, others = ([load(one) for one in given.get(kind, ())] for kind in ("roots", "untrusted"))
    request = _rust.parse_timestamp_request(given["request"]) if given.get("request") is not None else None
    policy = x509.ObjectIdentifier(given["policies"][0]) if given.get("policies") else None
    verifier = client.VerifierBuilder(
        roots=roots,
        intermediates=[one for one in others if one.subject != one.issuer],
        tsa_certificate=load(given["signer"]) if given.get("signer") else None,
        nonce=request.nonce if request else None,
        policy_id=(request and request.policy) or policy,
    ).build()
    raw = der.seq(der.seq(der.integer(0)), question.token) if question.is_bare else question.token
    response = client.decode_timestamp_response(raw)
    if given.get("document") is not None:
        return verifier.verify_message(response, given["document"])
    return verifier.verify(response, question.digest(""))


def by_rfc3161ng(question: Question) -> bool:
    import rfc3161ng
    from pyasn1.codec.der import decoder

    given = question.material
    hashname = given["digest"][0] if given.get("digest") else "sha256"
    if (question.valid or question.group == "real") and not given.get("digest"):
        # Somebody who asks for a token knows by which hash; nobody asks for a weak one.
        stated = verify_token(question.token, Material(**given), question.at).imprint_algorithm
        hashname = stated if stated in {"sha384", "sha512"} else hashname
    nonce = None
    if given.get("request") is not None:
        sent = rfc3161ng.decode_timestamp_request(given["request"])["nonce"]
        nonce = int(sent) if sent.hasValue() else None
    if (signer := signer_of(question)) is None:
        raise ValueError("there is no certificate to pin")
    stamper = rfc3161ng.RemoteTimestamper("", certificate=signer, hashname=hashname)
    if question.is_bare:
        token, rest = decoder.decode(question.token, asn1Spec=rfc3161ng.TimeStampToken())
        if rest:
            raise ValueError("extra data after the token")
        return stamper.check(token, digest=question.digest(hashname), nonce=nonce) is True
    response = rfc3161ng.decode_timestamp_response(question.token)
    return stamper.check_response(response, question.digest(hashname), nonce=nonce) is True


ASK: dict[str, Callable[[Question], bool]] = {
    "toolkit": by_toolkit,
    OPENSSL: lambda question: _openssl(question, at_gen_time=False),
    GIVEN_TIME: lambda question: _openssl(question, at_gen_time=True),
    "rfc3161-client": by_rfc3161_client,
    "rfc3161ng": by_rfc3161ng,
}


def _rejections(engine: str) -> tuple[type[BaseException], ...]:
    """Return what an engine raises to reject; anything else is a crash."""
    if engine == "rfc3161-client":
        from rfc3161_client import VerificationError

        return (VerificationError, ValueError)
    return (ValueError, InvalidSignature, PyAsn1Error) if engine == "rfc3161ng" else ()


@contextmanager
def _patience() -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise TimeoutError(f"no answer in {PATIENCE_S} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)


def ask(engine: str, question: Question) -> tuple[bool, str | None]:
    """Return whether an engine accepts a token, and of what it crashed."""
    rejections = _rejections(engine)
    try:
        with _patience():
            return ASK[engine](question), None
    except BaseException as error:  # a panic in Rust is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return False, None if isinstance(error, rejections) else f"{type(error).__name__}: {error}"[:120]


def is_asked(engine: str, question: Question) -> bool:
    always, for_defects = LACKS[engine]
    lacking = always if question.valid else always | for_defects
    return not lacking & question.inputs()


def measure(engine: str, questions: list[Question]) -> dict[str, Any]:
    """Return an engine's counts and names over questions of one kind."""
    asked = [question for question in questions if is_asked(engine, question)]
    accepted: dict[str, list[str]] = {}
    rejected, crashed = [], {}
    for question in asked:
        accepts, crash = ask(engine, question)
        if crash:
            crashed[question.name] = crash
        if question.valid and not accepts:
            rejected.append(question.name)
        if accepts and not question.valid:
            accepted.setdefault(question.group, []).append(question.name)
    return {
        "valid_asked": sum(question.valid for question in asked),
        "invalid_asked": sum(not question.valid for question in asked),
        "asked_by_check": dict(Counter(question.group for question in asked if not question.valid)),
        "not_asked": len(questions) - len(asked),
        "valid_rejected": rejected,
        "invalid_accepted": accepted,
        "crashed": crashed,
    }


# The result


def stored() -> dict[str, Any]:
    """Return the file."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def table(found: dict[str, Any]) -> str:
    """Return the tables of the README: errors by engine, and accepted defects by check."""
    engines = found["engines"]
    lines = [COLUMNS, "| --- " * 7 + "|"]
    for name, by_kind in engines.items():
        real, crafted = by_kind["real"], by_kind["crafted"]
        cells = [_of(kind, way) for kind in (real, crafted) for way in ("valid", "invalid")]
        crashes = len(crafted["crashed"]) + (len(real["crashed"]) if real else 0)
        called = f"`{name}` {found['versions'].get(name.partition(' ')[0], '')}".strip()
        lines.append(f"| {called} | {' | '.join(cells)} | {crafted['not_asked']} | {crashes} |")
    lines += [
        "",
        f"| bad crafted tokens accepted, by check | cases | {' | '.join(f'`{name}`' for name in engines)} |",
        f"| --- | --- |{' --- |' * len(engines)}",
    ]
    for check, cases in found["crafted_by_check"].items():
        counts = [_in_check(check, one["crafted"], cases) for one in engines.values()]
        lines.append(f"| {check} | {cases} | {' | '.join(counts)} |")
    return "\n".join(lines)


def _in_check(check: str, crafted: dict[str, Any], cases: int) -> str:
    asked = crafted["asked_by_check"].get(check, 0)
    count = str(len(crafted["invalid_accepted"].get(check, [])))
    return "not asked" if not asked else count if asked == cases else f"{count} of {asked}"


def _of(kind: dict[str, Any] | None, way: str) -> str:
    if kind is None:
        return "not at hand"
    if way == "valid":
        return f"{len(kind['valid_rejected'])} of {kind['valid_asked']}"
    return f"{sum(map(len, kind['invalid_accepted'].values()))} of {kind['invalid_asked']}"


def main() -> None:
    """Ask, write, print."""
    warnings.simplefilter("ignore")
    real, crafted = real_tokens(), crafted_tokens()
    print("" if real else MISSING, file=sys.stderr)
    openssl = subprocess.run(["openssl", "version"], capture_output=True, text=True, check=True).stdout
    packages = ("rfc3161-client", "rfc3161ng", "cryptography", "asn1crypto", "pyasn1")
    found: dict[str, Any] = {
        "versions": {"openssl": openssl.split()[1], **{name: version(name) for name in packages}},
        "asked_on": datetime.now(UTC).date().isoformat(),
        "crafted_by_check": by_check(),
        "engines": {},
    }
    for engine in LACKS:
        print(engine, file=sys.stderr)
        asked = {"real": measure(engine, real) if real else None, "crafted": measure(engine, crafted)}
        found["engines"][engine] = asked
    FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
