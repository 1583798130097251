"""Authorities made for the occasion, whose keys are written nowhere: their tokens prove nothing to others."""

import hashlib
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from asn1crypto import algos, cms, core, tsp
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from toolkit.errors import IncompleteError
from toolkit.prereg.authority import Judge, Reply, Say, make_request
from toolkit.prereg.record import Trusted
from toolkit.prereg.token.verdict import VERIFIED

LIFETIME = timedelta(days=3650)
ADDRESS = "demonstration"
# An arc for examples (ITU-T X.660): no authority has this policy.
POLICY = "2.999.3161"


class DemonstrationAuthority:
    """A root, a signer below it, and nothing that outlives the process but their certificates and tokens."""

    def __init__(self, name: str) -> None:
        self.name = name
        root_key, self._key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        now = datetime.now(UTC) - timedelta(minutes=1)
        root_name, signer_name = _name(f"{name} root"), _name(f"{name} signer")
        self._root = _certificate(root_name, root_key, root_name, root_key, now, is_root=True)
        self._signer = _certificate(signer_name, self._key, root_name, root_key, now, is_root=False)

    @property
    def root(self) -> bytes:
        """Its root certificate, DER."""
        return self._root.public_bytes(Encoding.DER)

    @property
    def trusted(self) -> Trusted:
        """Its entry in a trust file."""
        operator, fingerprint = f"{self.name} (made for the occasion)", hashlib.sha256(self.root).hexdigest()
        return Trusted(self.name, operator, ADDRESS, (fingerprint,))

    @property
    def certificates(self) -> tuple[bytes, ...]:
        """What is archived beside its tokens: its root."""
        return (self.root,)

    def obtain(self, digest: bytes, verify: Judge, say: Say) -> Reply:
        """Answer a request that any authority would be sent."""
        request = make_request(digest)
        reply = Reply(request, self.answer(request))
        verdict = verify(reply)
        if verdict.verdict != VERIFIED:
            raise IncompleteError("the demonstration's own token does not verify", found=verdict.message)
        say(f"{self.name}: made for the occasion")
        return reply

    def answer(self, request: bytes) -> bytes:
        """Answer a request as an authority does, with a token of the present time."""
        asked = tsp.TimeStampReq.load(request, strict=True)
        now = datetime.now(UTC).replace(microsecond=0)
        info = tsp.TSTInfo(
            {
                "version": "v1",
                "policy": POLICY,
                "message_imprint": asked["message_imprint"],
                "serial_number": secrets.randbits(64),
                "gen_time": core.GeneralizedTime(now),
                "accuracy": {"seconds": 1},
                "nonce": asked["nonce"],
                "tsa": asn1_x509.GeneralName("directory_name", self._parsed.subject),
            }
        )
        reply = {"status": {"status": "granted"}, "time_stamp_token": self._signed(info.dump())}
        return bytes(tsp.TimeStampResp(reply).dump())

    @property
    def _parsed(self) -> Any:
        return asn1_x509.Certificate.load(self._signer.public_bytes(Encoding.DER))

    def _signed(self, content: bytes) -> Any:
        certificate = self._parsed
        identifier = {"cert_hash": hashlib.sha256(certificate.dump()).digest()}
        attributes = cms.CMSAttributes(
            [
                {"type": "content_type", "values": ["tst_info"]},
                {"type": "message_digest", "values": [hashlib.sha256(content).digest()]},
                {"type": "signing_certificate_v2", "values": [{"certs": [identifier]}]},
            ]
        )
        identity = {"issuer": certificate.issuer, "serial_number": certificate.serial_number}
        digest = algos.DigestAlgorithm({"algorithm": "sha256"})
        signer = {
            "version": "v1",
            "sid": cms.SignerIdentifier("issuer_and_serial_number", identity),
            "digest_algorithm": digest,
            "signed_attrs": attributes,
            "signature_algorithm": {"algorithm": "sha256_ecdsa"},
            "signature": self._key.sign(attributes.dump(), ec.ECDSA(hashes.SHA256())),
        }
        signed = {
            "version": "v3",
            "digest_algorithms": [digest],
            "encap_content_info": {"content_type": "tst_info", "content": core.ParsableOctetString(content)},
            "certificates": [cms.CertificateChoices("certificate", certificate)],
            "signer_infos": [signer],
        }
        return cms.ContentInfo({"content_type": "signed_data", "content": cms.SignedData(signed)})


def _name(common: str) -> x509.Name:
    organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "DEMONSTRATION, not a public authority")
    return x509.Name([organization, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    begins: datetime,
    *,
    is_root: bool,
) -> x509.Certificate:
    no = False  # in order: a signature, four other uses of a key, certificates, revocation lists, two more
    usage = x509.KeyUsage(not is_root, no, no, no, no, is_root, is_root, no, no)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=is_root, path_length=0 if is_root else None), critical=True)
        .add_extension(usage, critical=True)
    )
    if not is_root:
        purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
        builder = builder.add_extension(purpose, critical=True)
    return builder.sign(issuer_key, hashes.SHA256())


def demonstrated() -> tuple[DemonstrationAuthority, ...]:
    """Return two authorities made for the occasion."""
    return DemonstrationAuthority("Demonstration A"), DemonstrationAuthority("Demonstration B")
