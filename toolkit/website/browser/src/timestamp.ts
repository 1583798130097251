/**
 * One RFC 3161 token, verified with PKI.js and WebCrypto. The program's own verifier makes fifteen checks, more than
 * these; `UNCHECKED` says which are left to it.
 */

import { type BitString, fromBER, ObjectIdentifier, OctetString, Sequence } from "asn1js";
import * as pki from "pkijs";
import { Certificate, type SignerInfo } from "pkijs";
import { type Bytes, hex, same, sha } from "./bytes";

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

const SIGNED_DATA = "1.2.840.113549.1.7.2";
const TST_INFO = "1.2.840.113549.1.9.16.1.4";
const CONTENT_TYPE = "1.2.840.113549.1.9.3";
const MESSAGE_DIGEST = "1.2.840.113549.1.9.4";
const SIGNING_CERTIFICATE = "1.2.840.113549.1.9.16.2.12";
const SIGNING_CERTIFICATE_V2 = "1.2.840.113549.1.9.16.2.47";
const TIMESTAMPING = "1.3.6.1.5.5.7.3.8";
const HASHES: Record<string, string> = {
  "2.16.840.1.101.3.4.2.1": "SHA-256",
  "2.16.840.1.101.3.4.2.2": "SHA-384",
  "2.16.840.1.101.3.4.2.3": "SHA-512",
};
// The key that a signature algorithm needs, and its hash where it names one.
const RSA = "1.2.840.113549.1.1.1";
const EC = "1.2.840.10045.2.1";
const SCHEMES: Record<string, { key: string; hash?: string }> = {
  [RSA]: { key: RSA },
  "1.2.840.113549.1.1.10": { key: RSA },
  "1.2.840.113549.1.1.11": { key: RSA, hash: "SHA-256" },
  "1.2.840.113549.1.1.12": { key: RSA, hash: "SHA-384" },
  "1.2.840.113549.1.1.13": { key: RSA, hash: "SHA-512" },
  "1.2.840.10045.4.3.2": { key: EC, hash: "SHA-256" },
  "1.2.840.10045.4.3.3": { key: EC, hash: "SHA-384" },
  "1.2.840.10045.4.3.4": { key: EC, hash: "SHA-512" },
};
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
    if (time > new Date()) throw new Refused("its time lies in the future");
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
  const outer = fromBER(raw);
  if (outer.offset !== raw.length || !(outer.result instanceof Sequence)) throw new Refused("it is no token");
  const isBare = outer.result.valueBlock.value[0] instanceof ObjectIdentifier;
  const reply = isBare ? null : new pki.TimeStampResp({ schema: outer.result });
  if (reply && reply.status.status > 1) throw new Refused(`the authority refused (status ${reply.status.status})`);
  const token = reply ? reply.timeStampToken : new pki.ContentInfo({ schema: outer.result });
  if (token?.contentType !== SIGNED_DATA) throw new Refused("it holds no signed data");
  const signed = new pki.SignedData({ schema: token.content });
  const [signer, second] = signed.signerInfos;
  if (!signer || second) throw new Refused(`it has ${signed.signerInfos.length} signers instead of one`);
  if (signed.encapContentInfo.eContentType !== TST_INFO) throw new Refused("what was signed is no TSTInfo");
  const content = new Uint8Array(signed.encapContentInfo.eContent?.getValue() ?? []);
  const info = pki.TSTInfo.fromBER(content);
  if (info.version !== 1) throw new Refused("its TSTInfo is not of version 1");
  if (info.extensions?.some((one) => one.critical)) throw new Refused("its TSTInfo has a critical extension");
  const embedded = (signed.certificates ?? []).filter((one) => one instanceof Certificate);
  if (embedded.length > MOST_CERTIFICATES) throw new Refused(`it embeds ${embedded.length} certificates`);
  return { info, content, signer, embedded };
}

async function checkImprint(imprint: pki.MessageImprint, { document, digest }: Material): Promise<void> {
  const hash = strongHash(imprint.hashAlgorithm.algorithmId);
  const stated = hex(imprint.hashedMessage.valueBlock.valueHexView);
  if (document) {
    const computed = hex(await sha(hash, document));
    if (stated !== computed) throw new Refused(`its imprint ${stated} is not the document's ${hash}, ${computed}`);
  } else if (digest?.algorithm !== hash) {
    throw new Refused(`the document is not here, and its ${hash} is not known`, null);
  } else if (stated !== digest.hex) throw new Refused("its imprint is not the document's recorded hash");
}

async function signerOf({ sid }: SignerInfo, certificates: Certificate[]): Promise<Certificate> {
  const meant = new Map<string, Certificate>();
  for (const one of certificates) {
    const isMeant =
      sid instanceof pki.IssuerAndSerialNumber
        ? one.issuer.isEqual(sid.issuer) && one.serialNumber.isEqual(sid.serialNumber)
        : same(keyIdentifier(one), sid.valueBlock.valueHexView);
    if (isMeant) meant.set(hex(der(one)), one);
  }
  const [found, another] = meant.values();
  if (!found) throw new Refused("its signer's certificate is not here", null);
  if (another) throw new Refused("several certificates answer to its signer's name");
  return found;
}

function keyIdentifier(certificate: Certificate): Uint8Array {
  const value = extension(certificate, "2.5.29.14")?.parsedValue;
  return value instanceof OctetString ? value.valueBlock.valueHexView : new Uint8Array();
}

/** That the signed attributes name the certificate by its hash: ESSCertID (RFC 2634) or its second version (RFC 5035). */
async function checkNamed(signer: SignerInfo, certificate: Certificate): Promise<void> {
  const first = attribute(signer, SIGNING_CERTIFICATE);
  const second = attribute(signer, SIGNING_CERTIFICATE_V2);
  if (!first && !second) throw new Refused("its signed attributes name no signing certificate");
  for (const [list, isSecond] of [[first, false], [second, true]] as const) {
    if (!list) continue;
    // SigningCertificate ::= { certs ::= { { hashAlgorithm?, certHash, issuerSerial? }, … }, policies? }
    const parts = items(items(items(list)[0])[0]);
    const named = parts[0] instanceof Sequence ? parts.shift() : undefined;
    const hash = named ? strongHash(items(named)[0]?.valueBlock.toString()) : isSecond ? "SHA-256" : "SHA-1";
    const stated = parts[0] instanceof OctetString ? parts[0].valueBlock.valueHexView : new Uint8Array();
    if (!same(stated, await sha(hash, der(certificate)))) {
      throw new Refused("its signed attributes name another certificate than its signer's");
    }
  }
}

async function checkContent(signer: SignerInfo, content: Bytes, hash: string): Promise<void> {
  if (attribute(signer, CONTENT_TYPE)?.valueBlock.toString() !== TST_INFO) {
    throw new Refused("its signed attributes do not say that a TSTInfo was signed");
  }
  const stated = attribute(signer, MESSAGE_DIGEST);
  if (!(stated instanceof OctetString) || !same(stated.valueBlock.valueHexView, await sha(hash, content))) {
    throw new Refused("its signed attributes are of another content");
  }
}

async function checkSignature(signer: SignerInfo, certificate: Certificate, digest: string): Promise<void> {
  const { signatureAlgorithm: algorithm, signature, signedAttrs } = signer;
  const hash = checkStrong(algorithm, certificate.subjectPublicKeyInfo) ?? digest;
  if (hash !== digest) throw new Refused(`its signature is over ${hash}, and its digest is ${digest}`);
  const signed = new Uint8Array(signedAttrs?.encodedValue ?? []);
  // PKI.js takes the hash from the algorithm, except where only the digest beside it names one.
  const named = algorithm.algorithmId === RSA ? digest : undefined;
  const engine = pki.getCrypto(true);
  const key = certificate.subjectPublicKeyInfo;
  const holds = await engine.verifyWithPublicKey(signed, signature, key, algorithm, named).catch(() => false);
  if (!holds) throw new Refused("its signature does not match");
}

function checkPurpose(certificate: Certificate): void {
  const purposes = extension(certificate, "2.5.29.37");
  const named = purposes?.parsedValue instanceof pki.ExtKeyUsage ? purposes.parsedValue.keyPurposes : [];
  if (named.length !== 1 || named[0] !== TIMESTAMPING || !purposes?.critical) {
    throw new Refused("its signer's certificate is not one for timestamping alone");
  }
  const constraints = extension(certificate, "2.5.29.19")?.parsedValue;
  if (constraints instanceof pki.BasicConstraints && constraints.cA) {
    throw new Refused("its signer's certificate is one of an authority for certificates");
  }
  const usage = extension(certificate, "2.5.29.15")?.parsedValue as BitString | undefined;
  const bits = usage?.valueBlock.valueHexView[0] ?? 0;
  // digitalSignature and nonRepudiation, and nothing else.
  if (usage && (bits & ~0xc0 || !bits)) {
    throw new Refused("its signer's key is for other things than signing");
  }
}

/** That one of the ways from a certificate to a pinned root holds, as PKI.js judges it at a time. */
async function checkChain(signer: Certificate, pool: Certificate[], pinned: string[], time: Date): Promise<void> {
  const named = await Promise.all(pool.map(async (one) => pinned.includes(hex(await sha("SHA-256", der(one))))));
  const roots = pool.filter((_, at) => named[at]);
  if (!roots.length) throw new Refused("the certificate of its pinned root is not here", null);
  let problem = "";
  for await (const [first, ...above] of ways([signer], pool, roots, { links: 0 })) {
    problem = constraint([...(first ? [first] : []), ...above]);
    if (problem) continue;
    const trustedCerts = above.splice(-1);
    // The last of `certs` is the one whose chain is asked for.
    const certs = first ? [...above, first] : [];
    const engine = new pki.CertificateChainValidationEngine({ trustedCerts, certs, checkDate: time });
    const { result, resultMessage } = await engine.verify();
    if (result) return;
    problem = `: ${resultMessage}`;
  }
  throw new Refused(`its signer's certificate leads to no pinned root at ${time.toISOString()}${problem}`);
}

/** What PKI.js does not look at: unknown critical extensions, and how high an authority may stand. */
function constraint(way: Certificate[]): string {
  for (const [height, certificate] of way.entries()) {
    const unknown = certificate.extensions?.find((one) => one.critical && !UNDERSTOOD.includes(one.extnID));
    if (unknown) return `: a certificate has the critical extension ${unknown.extnID}`;
    const highest = extension(certificate, "2.5.29.19")?.parsedValue?.pathLenConstraint as unknown;
    const below = way.slice(1, height).filter((one) => !one.issuer.isEqual(one.subject)).length;
    if (typeof highest === "number" && below > highest) return ": an authority stands too high above the signer";
  }
  return "";
}

/** The ways up from a certificate, every signature on them checked. */
async function* ways(
  way: Certificate[],
  pool: Certificate[],
  roots: Certificate[],
  tried: { links: number },
): AsyncGenerator<Certificate[]> {
  const last = way.at(-1);
  if (!last || way.length === LONGEST_CHAIN) return;
  for (const issuer of pool) {
    if (way.includes(issuer) || !issuer.subject.isEqual(last.issuer)) continue;
    if (++tried.links > MOST_LINKS) throw new Refused("more certificates have one name than a chain has");
    checkStrong(last.signatureAlgorithm, issuer.subjectPublicKeyInfo);
    if (!(await last.verify(issuer).catch(() => false))) continue;
    if (roots.includes(issuer)) yield [...way, issuer];
    else yield* ways([...way, issuer], pool, roots, tried);
  }
}

function strongHash(identifier: string | undefined): string {
  const hash = HASHES[identifier ?? ""];
  if (!hash) throw new Refused(`a hash is used that is weak or unknown (${identifier})`);
  return hash;
}

/** Refuse weak algorithms and keys, and what a browser cannot verify; return the hash that the algorithm names. */
function checkStrong(algorithm: pki.AlgorithmIdentifier, key: pki.PublicKeyInfo): string | undefined {
  const scheme = SCHEMES[algorithm.algorithmId];
  if (WEAK.test(algorithm.algorithmId)) throw new Refused(`a signature is too weak (${algorithm.algorithmId})`);
  if (!scheme || scheme.key !== key.algorithm.algorithmId) {
    throw new Refused(`this page cannot verify signatures of the kind ${algorithm.algorithmId}`, null);
  }
  const parsed = key.parsedKey;
  if (scheme.key === EC && !CURVES.includes(key.algorithm.algorithmParams?.valueBlock.toString())) {
    throw new Refused("this page cannot verify signatures on the curve that is used", null);
  }
  if (parsed instanceof pki.RSAPublicKey) {
    const bits = hex(parsed.modulus.valueBlock.valueHexView).replace(/^0+/, "").length * 4;
    const isOne = hex(parsed.publicExponent.valueBlock.valueHexView) === "01";
    const isUsual = bits >= FEWEST_RSA_BITS && bits <= MOST_RSA_BITS && !isOne;
    if (!isUsual) throw new Refused(`an RSA key of ${bits} bits is too weak, or absurd`);
  }
  if (algorithm.algorithmId !== "1.2.840.113549.1.1.10") return scheme.hash;
  const parameters = new pki.RSASSAPSSParams({ schema: algorithm.algorithmParams });
  return strongHash(parameters.hashAlgorithm.algorithmId);
}

/** The one value of a signed attribute; undefined where it is missing. */
function attribute(signer: SignerInfo, type: string) {
  const found = (signer.signedAttrs?.attributes ?? []).filter((one) => one.type === type);
  if (found.length > 1 || found.some((one) => one.values.length !== 1)) {
    throw new Refused(`its signed attribute ${type} is not there once, with one value`);
  }
  return found[0]?.values[0];
}

// asn1js gives no narrower type to what a sequence holds.
function items(node: any): any[] {
  return node instanceof Sequence ? [...node.valueBlock.value] : [];
}

function extension(certificate: Certificate, id: string): pki.Extension | undefined {
  return certificate.extensions?.find((one) => one.extnID === id);
}

function der(certificate: Certificate): Bytes {
  return new Uint8Array(certificate.toSchema().toBER());
}
