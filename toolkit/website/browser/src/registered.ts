/** The files of a registration: whether they are what its lists of hashes say, and what its tokens are over. */

import { parse } from "smol-toml";
import { type Bytes, fromBase64, hex, sha } from "./bytes";
import { load } from "./page";
import { type Material, UNCHECKED, verifyToken } from "./timestamp";

/** What was verified of one authority's token. */
export interface Verified {
  authority: string;
  /** Null where nothing can be said. */
  ok: boolean | null;
  says: string;
  notChecked: string;
}

export type Files = ReadonlyMap<string, Bytes>;

interface Authority {
  name: string;
  roots: string[];
  token_place?: string;
}

interface FreezeRecord {
  standing: string;
  document: string;
  document_sha256: string;
  document_place: string;
  authorities: Authority[];
}

const FROZEN = "FROZEN.sha256";
const CHAIN = "LATER.chain";
const CERTIFICATES = /^evidence\/.*\.(?:pem|crt|cer)$/i;
const LINE = /^([0-9a-f]{64}) {2}(?:([0-9a-f]{64}) {2})?(.+)$/;

/** All files of a registration that this site carries, by their place in it. */
export async function filesOf(registration: string): Promise<Files> {
  const key = `registrations/${registration}`;
  const left = ((globalThis as Record<string, unknown>)["toolkitRegisters"] ??= {}) as Record<string, unknown>;
  if (!(key in left)) await load(`data/${key}.js`);
  const held = Object.entries(left[key] as Record<string, string>);
  return new Map(held.map(([name, text]) => [name, fromBase64(text)]));
}

/** SHA-256 of every file, in hexadecimal digits, by its place. */
export async function hashes(files: Files): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const [name, bytes] of files) found.set(name, hex(await sha("SHA-256", bytes)));
  return found;
}

/** Verify every token of a registration: those of its freeze, and those of what was added later. */
export async function verifyTokens(registration: string): Promise<Verified[]> {
  if (!(globalThis.crypto as Crypto | undefined)?.subtle) {
    return [{ authority: "every authority", ok: null, says: "A browser verifies nothing on a page without https.", notChecked: "" }];
  }
  const files = await filesOf(registration);
  const known = await hashes(files);
  const links = await checkLists(files, known);
  const record = toml<FreezeRecord>(files, "record.toml");
  const document = files.get(record.document_place);
  const digest = { algorithm: "SHA-256", hex: record.document_sha256 };
  const isOwn = record.document_place === FROZEN;
  const what = isOwn ? `the list of the ${links.frozen} frozen files` : record.document;
  const answers: Verified[] = [];
  const ask = async (of: Authority, place: string, about: Pick<Material, "document" | "digest">, subject: string) => {
    answers.push(await verify(files, of, place, about, subject, record.standing));
  };
  const trusted = toml<{ authorities: Authority[] }>(files, "trust.toml").authorities;
  for (const { name, token_place: place } of record.authorities) {
    const authority = trusted.find((one) => one.name === name) ?? { name, roots: [] };
    await ask(authority, place ?? "", { document, digest }, what);
  }
  for (const { id, text } of isOwn ? links.later : []) {
    const own = `trust/${id}.toml`;
    const authorities = files.has(own) ? toml<{ authorities: Authority[] }>(files, own).authorities : trusted;
    for (const authority of authorities) {
      const place = `evidence/${id}.${slug(authority.name)}.tsr`;
      await ask(authority, place, { document: text }, `${id}, and all that was registered before it`);
    }
  }
  return answers;
}

async function verify(
  files: Files,
  authority: Authority,
  place: string,
  about: Pick<Material, "document" | "digest">,
  subject: string,
  standing: string,
): Promise<Verified> {
  const token = files.get(place);
  const certificates = [...files].flatMap(([name, bytes]) => (CERTIFICATES.test(name) ? fromPem(bytes) : []));
  const judged = token
    ? await verifyToken(token, { ...about, roots: authority.roots, certificates })
    : { ok: null, reason: `its token (${place}) is not on this site`, time: null };
  const when = judged.time?.toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
  const says = {
    true: `${authority.name} signed that ${subject} existed on ${when}.`,
    false: `The token ${place} of ${authority.name} does not hold: ${judged.reason}.`,
    null: `Nothing can be said of ${authority.name}: ${judged.reason}.`,
  }[`${judged.ok}`];
  const whom = standing === "demonstration" ? "it was made for the occasion, and proves nothing to others" : "whether to trust it is yours to say";
  const notChecked = judged.ok ? `Not checked here: ${UNCHECKED}. Nor the authority itself: ${whom}.` : "";
  return { authority: authority.name, ok: judged.ok, says: says ?? "", notChecked };
}

/** Check every file against its list; return how many are frozen, and the chain up to each later entry. */
async function checkLists(files: Files, known: Map<string, string>) {
  const frozen = lines(files, FROZEN);
  const later: { id: string; text: Bytes }[] = [];
  let link = known.get(FROZEN) ?? "";
  let text = "";
  for (const { first, name } of frozen) expect(name, first, known);
  for (const { first, second, name, line } of lines(files, CHAIN)) {
    expect(name, second, known);
    link = hex(await sha("SHA-256", new TextEncoder().encode(`${link}\n${second}  ${name}\n`)));
    if (link !== first) throw new Error(`${CHAIN} does not follow from what was frozen, at ${name}`);
    text += `${line}\n`;
    const id = /^(?:amendments|deviations)\/(.+)\.toml$/.exec(name)?.[1];
    if (id) later.push({ id, text: new TextEncoder().encode(text) });
  }
  return { frozen: frozen.length, later };
}

function expect(name: string, wanted: string, known: Map<string, string>): void {
  const found = known.get(name) ?? "no such file";
  if (found !== wanted) throw new Error(`${name} is not the registered file: expected SHA-256 ${wanted}, found ${found}`);
}

function lines(files: Files, list: string) {
  const kept = text(files, list).split("\n").filter(Boolean);
  return kept.map((line) => {
    const [, first, second = "", name] = LINE.exec(line) ?? [];
    if (!first || !name) throw new Error(`${list} has a line that it cannot have`);
    return { first, second, name, line };
  });
}

function toml<T>(files: Files, name: string): T {
  return parse(text(files, name)) as T;
}

function text(files: Files, name: string): string {
  const bytes = files.get(name);
  if (!bytes) throw new Error(`${name} is not on this site`);
  return new TextDecoder().decode(bytes);
}

/** The certificates of a file; one that is no PEM is a certificate itself. */
function fromPem(file: Bytes): Bytes[] {
  if (file[0] === 0x30) return [file];
  const blocks = new TextDecoder().decode(file).matchAll(/-----BEGIN CERTIFICATE-----([^-]+)-----END/g);
  return Array.from(blocks, ([, inner = ""]) => fromBase64(inner.replace(/\s/g, "")));
}

/** What an authority is called in names of files. */
function slug(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 40).replace(/-$/, "");
}
