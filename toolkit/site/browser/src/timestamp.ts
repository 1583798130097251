/**
 * One RFC 3161 token, verified with PKI.js and WebCrypto. The program's own verifier makes fifteen checks, more than
 * these; `UNCHECKED` says which are left to it.
 */

import { type BitString, fromBER, ObjectIdentifier, OctetString, Sequence } from "asn1js";
import * as pki from "pkijs";
import { Certificate, type SignerInfo } from "pkijs";
import { type Bytes, hex, sha } from "./bytes";

export const UNCHECKED =
  "revocation, the request's nonce and policy, the authority's name inside the token, strict encoding (DER), and " +
  "further certificates in the token";

/** What a token is judged by. */
export interface Material {
  document?: Bytes | undefined;
  /** Hash of the document, where the document itself is not here. */
  digest?: { algorithm: string; hex: string };
  /** SHA-256 of the certificates that are trusted, and no others. */
  roots: string[];
  /** Certificates beside those that the token embeds, DER. */
  certificates: Bytes[];
}

/** What came of it: false means refused, null that nothing can be said. */
interface Judged {
  ok: boolean | null;
  reason: string;
  time: Date | null;
}

class Refused extends Error {
  constructor(message: string, readonly ok: false | null = false) {
    super(message);
  }
}

function must(holds: unknown, otherwise: string, ok: false | null = false): asserts holds {
  if (!holds) throw new Refused(otherwise, ok);
}

const SIGNED_DATA = "1.2.840.113549.1.7.2";
const TST_INFO = "1.2.840.113549.1.9.16.1.4";
const CONTENT_TYPE = "1.2.840.113549.1.9.3";
const MESSAGE_DIGEST = "1.2.840.113549.1.9.4";
// ESSCertID (RFC 2634) has a hash of its own; its second version (RFC 5035) may name another.
const SIGNING_CERTIFICATE = { "1.2.840.113549.1.9.16.2.12": "SHA-1", "1.2.840.113549.1.9.16.2.47": "SHA-256" };
// Web servers, their clients, code, mail.
const OTHER_PURPOSE = /^1\.3\.6\.1\.5\.5\.7\.3\.[1-4]$/;
const TIMESTAMPING = "1.3.6.1.5.5.7.3.8";
const HASHES = ["SHA-256", "SHA-384", "SHA-512"];
const RSA = "1.2.840.113549.1.1.1";
const PSS = "1.2.840.113549.1.1.10";
const EC = "1.2.840.10045.2.1";
// The key that a signature scheme of PKI.js needs; what names the key alone is RSA with the hash of the digest beside it.
const KEYS: Record<string, string> = { "RSAES-PKCS1-v1_5": RSA, "RSASSA-PKCS1-v1_5": RSA, "RSA-PSS": RSA, ECDSA: EC };
// With MD5 or SHA-1, and DSA.
const WEAK = /^1\.2\.840\.113549\.1\.1\.[2-5]$|^1\.2\.840\.10045\.4\.1$|^1\.2\.840\.10040\.4\./;
const CURVES = ["1.2.840.10045.3.1.7", "1.3.132.0.34", "1.3.132.0.35"];
// Critical extensions of certificates that PKI.js or this module judge, or that bind nobody here.
const UNDERSTOOD = [14, 15, 17, 18, 19, 30, 32, 33, 35, 36, 37, 54].map((last) => `2.5.29.${last}`);
const FEWEST_RSA_BITS = 2048;
const MOST_RSA_BITS = 8192;
const LONGEST_CHAIN = 8;
// What a token embeds is anybody's: certificates of one name multiply into as many chains as their product.
const MOST_CERTIFICATES = 64;
const MOST_LINKS = 60;

/** Verify a token: a reply of an authority, or the bare token. */
export async function verifyToken(raw: Bytes, material: Material): Promise<Judged> {
  let time: Date | null = null;
  try {
    // 1. It was granted, and is one TSTInfo signed by one signer.
    const { info, content, signer, embedded } = read(raw);
    time = info.genTime;
    must(time <= new Date(), "its time lies in the future");
    // 2. Its imprint is the document's.
    await checkImprint(info.messageImprint, material);
    // 3. The signer's certificate is at hand, and the signed attributes name it.
    const pool = [...embedded, ...material.certificates.map((one) => Certificate.fromBER(one))];
    const certificate = await signerOf(signer, pool);
    await checkNamed(signer, certificate);
    // 4. The signed attributes are of this content, and the signature is over them.
    const hash = strongHash(signer.digestAlgorithm.algorithmId);
    await checkContent(signer, content, hash);
    await checkSignature(signer, certificate, hash);
    // 5. The certificate is for timestamping alone.
    checkPurpose(certificate);
    // 6. At the token's time it led to a root that is pinned.
    await checkChain(certificate, pool, material.roots, time);
    return { ok: true, reason: "", time };
  } catch (error) {
    if (error instanceof Refused) return { ok: error.ok, reason: error.message, time };
    return { ok: false, reason: `it cannot be read (${error instanceof Error ? error.message : error})`, time };
  }
}

function read(raw: Bytes) {
  const { offset, result } = fromBER(raw);
  must(offset === raw.length && result instanceof Sequence, "it is no token");
  const reply = result.valueBlock.value[0] instanceof ObjectIdentifier ? null : new pki.TimeStampResp({ schema: result });
  must(!reply || reply.status.status <= 1, `the authority refused (status ${reply?.status.status})`);
  const token = reply ? reply.timeStampToken : new pki.ContentInfo({ schema: result });
  must(token?.contentType === SIGNED_DATA, "it holds no signed data");
  const { signerInfos, encapContentInfo, certificates = [] } = new pki.SignedData({ schema: token.content });
  const [signer, second] = signerInfos;
  must(signer && !second, `it has ${signerInfos.length} signers instead of one`);
  must(encapContentInfo.eContentType === TST_INFO, "what was signed is no TSTInfo");
  const content = new Uint8Array(encapContentInfo.eContent?.getValue() ?? []);
  const info = pki.TSTInfo.fromBER(content);
  must(info.version === 1, "its TSTInfo is not of version 1");
  must(!info.extensions?.some((one) => one.critical), "its TSTInfo has a critical extension");
  const embedded = certificates.filter((one) => one instanceof Certificate);
  must(embedded.length <= MOST_CERTIFICATES, `it embeds ${embedded.length} certificates`);
  return { info, content, signer, embedded };
}

async function checkImprint(imprint: pki.MessageImprint, { document, digest }: Material): Promise<void> {
  const hash = strongHash(imprint.hashAlgorithm.algorithmId);
  const stated = hex(imprint.hashedMessage.valueBlock.valueHexView);
  if (document) {
    const computed = hex(await sha(hash, document));
    return must(stated === computed, `its imprint ${stated} is not the document's ${hash}, ${computed}`);
  }
  must(digest?.algorithm === hash, `the document is not here, and its ${hash} is not known`, null);
  must(stated === digest.hex, "its imprint is not the document's recorded hash");
}

async function signerOf({ sid }: SignerInfo, certificates: Certificate[]): Promise<Certificate> {
  const isMeant = (one: Certificate) =>
    sid instanceof pki.IssuerAndSerialNumber
      ? one.issuer.isEqual(sid.issuer) && one.serialNumber.isEqual(sid.serialNumber)
      : octets(extension(one, "2.5.29.14")?.parsedValue) === hex(sid.valueBlock.valueHexView);
  const meant = new Map(certificates.filter(isMeant).map((one) => [hex(der(one)), one]));
  const [found, another] = meant.values();
  must(found, "its signer's certificate is not here", null);
  must(!another, "several certificates answer to its signer's name");
  return found;
}

/** That the signed attributes name the certificate by its hash, in each version that they have. */
async function checkNamed(signer: SignerInfo, certificate: Certificate): Promise<void> {
  const lists = Object.entries(SIGNING_CERTIFICATE).flatMap(([type, usual]) => {
    const list = attribute(signer, type);
    return list ? [{ list, usual }] : [];
  });
  must(lists.length, "its signed attributes name no signing certificate");
  for (const { list, usual } of lists) {
    // SigningCertificate ::= { certs ::= { { hashAlgorithm?, certHash, issuerSerial? }, … }, policies? }
    const parts = items(items(items(list)[0])[0]);
    const named = parts[0] instanceof Sequence ? parts.shift() : undefined;
    const hash = named ? strongHash(items(named)[0]?.valueBlock.toString()) : usual;
    const isNamed = octets(parts[0]) === hex(await sha(hash, der(certificate)));
    must(isNamed, "its signed attributes name another certificate than its signer's");
  }
}

async function checkContent(signer: SignerInfo, content: Bytes, hash: string): Promise<void> {
  const isOfOne = attribute(signer, CONTENT_TYPE)?.valueBlock.toString() === TST_INFO;
  must(isOfOne, "its signed attributes do not say that a TSTInfo was signed");
  const isOfThis = octets(attribute(signer, MESSAGE_DIGEST)) === hex(await sha(hash, content));
  must(isOfThis, "its signed attributes are of another content");
}

async function checkSignature(signer: SignerInfo, certificate: Certificate, digest: string): Promise<void> {
  const { signatureAlgorithm: algorithm, signature, signedAttrs } = signer;
  const key = certificate.subjectPublicKeyInfo;
  const hash = checkStrong(algorithm, key) ?? digest;
  must(hash === digest, `its signature is over ${hash}, and its digest is ${digest}`);
  const signed = new Uint8Array(signedAttrs?.encodedValue ?? []);
  // PKI.js takes the hash from the algorithm, except where only the digest beside it names one.
  const named = algorithm.algorithmId === RSA ? digest : undefined;
  const verified = pki.getCrypto(true).verifyWithPublicKey(signed, signature, key, algorithm, named);
  must(await verified.catch(() => false), "its signature does not match");
}

function checkPurpose(certificate: Certificate): void {
  const purposes = extension(certificate, "2.5.29.37");
  const named = purposes?.parsedValue instanceof pki.ExtKeyUsage ? purposes.parsedValue.keyPurposes : [];
  const isAlone = named.length === 1 && named[0] === TIMESTAMPING && purposes?.critical;
  must(isAlone, "its signer's certificate is not one for timestamping alone");
  const constraints = extension(certificate, "2.5.29.19")?.parsedValue;
  const isAuthority = constraints instanceof pki.BasicConstraints && constraints.cA;
  must(!isAuthority, "its signer's certificate is one of an authority for certificates");
  const usage = extension(certificate, "2.5.29.15")?.parsedValue as BitString | undefined;
  const bits = usage?.valueBlock.valueHexView[0] ?? 0;
  // digitalSignature and nonRepudiation, and nothing else.
  must(!usage || (bits && !(bits & ~0xc0)), "its signer's key is for other things than signing");
}

/** That one of the ways from a certificate to a pinned root holds, as PKI.js judges it at a time. */
async function checkChain(signer: Certificate, pool: Certificate[], pinned: string[], time: Date): Promise<void> {
  const named = await Promise.all(pool.map(async (one) => pinned.includes(hex(await sha("SHA-256", der(one))))));
  const roots = pool.filter((_, at) => named[at]);
  must(roots.length, "the certificate of its pinned root is not here", null);
  let [links, problem] = [0, ""];
  /** The ways up from the last certificate of one, every signature on them checked. */
  async function* ways(way: Certificate[], last: Certificate): AsyncGenerator<Certificate[]> {
    if (way.length === LONGEST_CHAIN) return;
    for (const issuer of pool) {
      if (way.includes(issuer) || !issuer.subject.isEqual(last.issuer)) continue;
      must(++links <= MOST_LINKS, "more certificates have one name than a chain has");
      checkStrong(last.signatureAlgorithm, issuer.subjectPublicKeyInfo);
      if (!(await last.verify(issuer).catch(() => false))) continue;
      if (roots.includes(issuer)) yield [...way, issuer];
      else yield* ways([...way, issuer], issuer);
    }
  }
  for await (const way of ways([signer], signer)) {
    problem = constraint(way);
    if (problem) continue;
    // The last of `certs` is the one whose chain is asked for.
    const [trustedCerts, certs] = [way.slice(-1), [...way.slice(1, -1), signer]];
    const engine = new pki.CertificateChainValidationEngine({ trustedCerts, certs, checkDate: time });
    const { result, resultMessage } = await engine.verify();
    if (result) return;
    problem = `: ${resultMessage}`;
  }
  throw new Refused(`its signer's certificate leads to no pinned root at ${time.toISOString()}${problem}`);
}

/** What PKI.js does not look at: unknown critical extensions, how high an authority may stand, and what for. */
function constraint(way: Certificate[]): string {
  for (const [height, certificate] of way.entries()) {
    const purposes = extension(certificate, "2.5.29.37")?.parsedValue;
    const isForOthers = purposes instanceof pki.ExtKeyUsage && purposes.keyPurposes.every((one) => OTHER_PURPOSE.test(one));
    const isBetween = height > 0 && certificate !== way.at(-1);
    if (isBetween && isForOthers) return ": an authority above the signer was made for other things than timestamping";
    const unknown = certificate.extensions?.find((one) => one.critical && !UNDERSTOOD.includes(one.extnID));
    if (unknown) return `: a certificate has the critical extension ${unknown.extnID}`;
    const highest = extension(certificate, "2.5.29.19")?.parsedValue?.pathLenConstraint as unknown;
    const below = way.slice(1, height).filter((one) => !one.issuer.isEqual(one.subject)).length;
    if (typeof highest === "number" && below > highest) return ": an authority stands too high above the signer";
  }
  return "";
}

function strongHash(identifier = ""): string {
  const { name } = schemeOf(identifier);
  must(HASHES.includes(name), `a hash is used that is weak or unknown (${identifier})`);
  return name;
}

/** Refuse weak algorithms and keys, and what a browser cannot verify; return the hash that the algorithm names. */
function checkStrong({ algorithmId, algorithmParams }: pki.AlgorithmIdentifier, key: pki.PublicKeyInfo): string | undefined {
  must(!WEAK.test(algorithmId), `a signature is too weak (${algorithmId})`);
  const { name, hash } = schemeOf(algorithmId);
  const { algorithm, parsedKey } = key;
  const isKnown = KEYS[name] === algorithm.algorithmId && (!hash || HASHES.includes(hash.name));
  must(isKnown, `this page cannot verify signatures of the kind ${algorithmId}`, null);
  const isOnCurve = name !== "ECDSA" || CURVES.includes(algorithm.algorithmParams?.valueBlock.toString());
  must(isOnCurve, "this page cannot verify signatures on the curve that is used", null);
  if (parsedKey instanceof pki.RSAPublicKey) {
    const bits = hex(parsedKey.modulus.valueBlock.valueHexView).replace(/^0+/, "").length * 4;
    const isOne = hex(parsedKey.publicExponent.valueBlock.valueHexView) === "01";
    const isUsual = bits >= FEWEST_RSA_BITS && bits <= MOST_RSA_BITS && !isOne;
    must(isUsual, `an RSA key of ${bits} bits is too weak, or absurd`);
  }
  if (algorithmId !== PSS) return hash?.name;
  return strongHash(new pki.RSASSAPSSParams({ schema: algorithmParams }).hashAlgorithm.algorithmId);
}

/** What WebCrypto calls an algorithm, and its hash where it names one. */
function schemeOf(identifier: string): { name: string; hash?: { name: string } } {
  return { name: "", ...pki.getAlgorithmByOID(identifier) };
}

/** The one value of a signed attribute; undefined where it is missing. */
function attribute(signer: SignerInfo, type: string) {
  const found = (signer.signedAttrs?.attributes ?? []).filter((one) => one.type === type);
  const isOne = found.length <= 1 && found.every((one) => one.values.length === 1);
  must(isOne, `its signed attribute ${type} is not there once, with one value`);
  return found[0]?.values[0];
}

// asn1js gives no narrower type to what a sequence holds.
function items(node: any): any[] {
  return node instanceof Sequence ? [...node.valueBlock.value] : [];
}

function octets(node: unknown): string {
  return node instanceof OctetString ? hex(node.valueBlock.valueHexView) : "";
}

function extension(certificate: Certificate, id: string): pki.Extension | undefined {
  return certificate.extensions?.find((one) => one.extnID === id);
}

function der(certificate: Certificate): Bytes {
  return new Uint8Array(certificate.toSchema().toBER());
}
