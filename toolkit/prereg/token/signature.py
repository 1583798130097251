"""Is a signature of a token, certificate or list this key's, by algorithms that still hold (RFC 4055)?"""

from collections.abc import Mapping
from typing import Any

from asn1crypto.algos import SignedDigestAlgorithm
from asn1crypto.keys import PublicKeyInfo
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key

from .der import ALGORITHM, Node, check_algorithm, shape
from .verdict import Refused

STRONG: Mapping[str, hashes.HashAlgorithm] = {
    known.name: known for known in (hashes.SHA256(), hashes.SHA384(), hashes.SHA512())
}
"""The hashes that are accepted anywhere."""

MIN_RSA_BITS = 2048
# Beyond this a single check takes longer than all others together.
MAX_RSA_BITS = 8192
MAX_RSA_EXPONENT = 2**64
_OWN_HASH = frozenset({"ed25519", "ed448"})
_MASK = shape("algorithm OID, parameters SEQUENCE")
_PSS_PARAMETERS = shape("hash? [0], mask? [1], salt? [2], trailer? [3]")
MIN_CURVE_BITS = 256


def check_signature(
    key: bytes, algorithm: Node, signature: bytes, message: bytes, digest: str | None = None
) -> str:
    """Check a signature."""
    stated = _stated(algorithm)
    scheme, named = _scheme(stated)
    chosen = named or digest
    if digest is not None and named is not None and digest != named:
        raise Refused(f"the signature is over {named}, and the digest is {digest}")
    if scheme not in _OWN_HASH or digest is not None:
        strong_hash(chosen)
    key_info = PublicKeyInfo.load(key, strict=True)
    public = _public_key(key, key_info)
    try:
        match public, scheme:
            case rsa.RSAPublicKey(), "rsa" if _is_plain(key_info):
                public.verify(signature, message, padding.PKCS1v15(), strong_hash(chosen))
            case rsa.RSAPublicKey(), "pss":
                _check_pss_key(key_info, stated)
                public.verify(signature, message, _pss(stated), strong_hash(chosen))
            case ec.EllipticCurvePublicKey(), "ecdsa":
                public.verify(signature, message, ec.ECDSA(strong_hash(chosen)))
            case (ed25519.Ed25519PublicKey(), "ed25519") | (ed448.Ed448PublicKey(), "ed448"):
                public.verify(signature, message)
            case _:
                raise Refused(f"signature algorithm {stated['algorithm'].native} is none of the signer's key")
    except InvalidSignature:
        raise Refused("signature does not match") from None
    return f"{_key_name(public, scheme)} with {chosen or 'its own hash'}"


def strong_hash(name: str | None) -> hashes.HashAlgorithm:
    """Return a hash by name."""
    if name is None or name not in STRONG:
        raise Refused(f"weak or unknown algorithm {name}: SHA-256, SHA-384 and SHA-512 are accepted")
    return STRONG[name]


def _stated(algorithm: Node) -> Any:
    """Read an AlgorithmIdentifier, holding it and the parameters of RSASSA-PSS to their fields."""
    fields = algorithm.fields(ALGORITHM)
    stated = SignedDigestAlgorithm.load(algorithm.der, strict=True)
    if stated["algorithm"].native != "rsassa_pss":
        check_algorithm(algorithm)
    elif "parameters" in fields:
        parameters = fields["parameters"].fields(_PSS_PARAMETERS)
        parts = {name: value.only_child() for name, value in parameters.items()}
        if "hash" in parts:
            check_algorithm(parts["hash"])
        if "mask" in parts:
            mask = parts["mask"].fields(_MASK)
            check_algorithm(mask["parameters"])
    return stated


def _scheme(algorithm: Any) -> tuple[str, str | None]:
    """Return the scheme of an AlgorithmIdentifier, and the hash that it names."""
    name = str(algorithm["algorithm"].native)
    if name == "rsassa_pss":
        return "pss", str(algorithm["parameters"]["hash_algorithm"]["algorithm"].native)
    if name == "rsassa_pkcs1v15":
        return "rsa", None
    if name in {"ed25519", "ed448"}:
        return name, None
    hashed, _, scheme = name.partition("_")
    if scheme not in {"rsa", "ecdsa"}:
        raise Refused(f"weak or unknown algorithm {name}")
    return scheme, hashed


def _public_key(der: bytes, key_info: Any) -> Any:
    kind = key_info["algorithm"]["algorithm"].native
    try:
        if kind in {"rsa", "rsassa_pss"}:
            numbers = key_info["public_key"].parsed
            modulus, exponent = numbers["modulus"].native, numbers["public_exponent"].native
            _check_rsa(modulus, exponent)
            return rsa.RSAPublicNumbers(exponent, modulus).public_key()
        if kind == "ec" and key_info["algorithm"]["parameters"].name != "named":
            raise Refused("the signer's key is on a curve that it does not name")
        key = load_der_public_key(der)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise Refused(f"the signer's key cannot be used ({kind}: {error})") from None
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.key_size < MIN_CURVE_BITS:
        raise Refused(f"weak algorithm: a curve of {key.curve.key_size} bits")
    return key


def _check_rsa(modulus: int, exponent: int) -> None:
    if modulus.bit_length() < MIN_RSA_BITS:
        raise Refused(f"weak algorithm: an RSA key of {modulus.bit_length()} bits")
    if modulus.bit_length() > MAX_RSA_BITS or exponent > MAX_RSA_EXPONENT:
        raise Refused("an RSA key of absurd size")


def _is_plain(key_info: Any) -> bool:
    """Whether a key may be used with PKCS #1 v1.5: an id-RSASSA-PSS one may not (RFC 4055)."""
    return bool(key_info["algorithm"]["algorithm"].native == "rsa")


def _pss(algorithm: Any) -> padding.PSS:
    parameters = algorithm["parameters"]
    mask = parameters["mask_gen_algorithm"]
    if mask["algorithm"].native != "mgf1" or parameters["trailer_field"].native != "trailer_field_bc":
        raise Refused("weak or unknown algorithm: RSASSA-PSS with another mask than MGF1")
    mask_hash = strong_hash(str(mask["parameters"]["algorithm"].native))
    salt = int(parameters["salt_length"].native)
    if not 0 <= salt <= MAX_RSA_BITS // 8:
        raise Refused("an RSASSA-PSS salt of absurd length")
    return padding.PSS(padding.MGF1(mask_hash), salt)


def _check_pss_key(key_info: Any, algorithm: Any) -> None:
    """Check a signature's parameters against those that its key insists on (RFC 4055, section 3.3)."""
    wanted = key_info["algorithm"]["parameters"]
    if _is_plain(key_info) or wanted.native is None:
        return
    used = algorithm["parameters"]
    same = all(wanted[name].native == used[name].native for name in ("hash_algorithm", "mask_gen_algorithm"))
    if not same or used["salt_length"].native < wanted["salt_length"].native:
        raise Refused("the signature's parameters are not those that its key insists on")


def _key_name(key: Any, scheme: str) -> str:
    match key:
        case rsa.RSAPublicKey():
            return f"{'RSASSA-PSS' if scheme == 'pss' else 'RSA'} {key.key_size}"
        case ec.EllipticCurvePublicKey():
            return f"ECDSA {key.curve.name}"
        case ed25519.Ed25519PublicKey():
            return "Ed25519"
        case _:
            return "Ed448"
