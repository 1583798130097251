/** On a registration's page: verifies its tokens here, and says of a file whether it is a registered one. */

import { type Bytes, canHash, fromBase64, sha256, utf8 } from "./bytes";
import { element, make, messageOf } from "./page";
import { FROZEN, Registration } from "./registration";
import { type Material, UNCHECKED, verifyToken } from "./timestamp";

/** What was verified of one authority's token. */
interface Verified {
  authority: string;
  /** Null where nothing can be said. */
  ok: boolean | null;
  says: string;
  notChecked: string;
}

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

type Subject = Pick<Material, "document" | "digest">;

declare global {
  var verifyTokens: (registration: string) => Promise<Verified[]>;
  /** For whoever wants to check it: a test, or a reader at the console. */
  var toolkitTokens: object;
}
globalThis.verifyTokens = verifyTokens;
globalThis.toolkitTokens = { verifyToken };

const CERTIFICATES = /^evidence\/.*\.(?:pem|crt|cer)$/i;
const MARKS = { true: ["verified", "good"], false: ["refused", "bad"], null: ["not known", "mixed"] } as const;

/** Verify every token of a registration: those of its freeze, and those of what was added later. */
async function verifyTokens(name: string): Promise<Verified[]> {
  if (!canHash()) {
    return [{ authority: "every authority", ok: null, says: "A browser verifies nothing on a page without https.", notChecked: "" }];
  }
  const registration = await Registration.load(name);
  const { files } = registration;
  const { frozen, later } = await registration.check();
  const record = registration.toml<FreezeRecord>("record.toml");
  const trustedBy = (place: string) => registration.toml<{ authorities: Authority[] }>(place).authorities;
  const trusted = trustedBy("trust.toml");
  const certificates = [...files].flatMap(([name, bytes]) => (CERTIFICATES.test(name) ? fromPem(bytes) : []));
  const whom =
    record.standing === "demonstration"
      ? "it was made for the occasion, and proves nothing to others"
      : "whether to trust it is yours to say";

  const verify = async ({ name, roots }: Authority, place: string, subject: string, of: Subject): Promise<Verified> => {
    const token = files.get(place);
    const { ok, reason, time } = token
      ? await verifyToken(token, { ...of, roots, certificates })
      : { ok: null, reason: `its token (${place}) is not on this site`, time: null };
    const when = time?.toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
    const says = ok
      ? `${name} signed that ${subject} existed on ${when}.`
      : ok === false
        ? `The token ${place} of ${name} does not hold: ${reason}.`
        : `Nothing can be said of ${name}: ${reason}.`;
    const notChecked = ok ? `Not checked here: ${UNCHECKED}. Nor the authority itself: ${whom}.` : "";
    return { authority: name, ok, says, notChecked };
  };

  const answers: Verified[] = [];
  const isOwn = record.document_place === FROZEN;
  const what = isOwn ? `the list of the ${frozen} frozen files` : record.document;
  const digest = { algorithm: "SHA-256", hex: record.document_sha256 };
  for (const { name, token_place = "" } of record.authorities) {
    const authority = trusted.find((one) => one.name === name) ?? { name, roots: [] };
    answers.push(await verify(authority, token_place, what, { document: files.get(record.document_place), digest }));
  }
  for (const { name, chain } of isOwn ? later : []) {
    const id = /^(?:amendments|deviations)\/(.+)\.toml$/.exec(name)?.[1];
    if (!id) continue;
    const own = `trust/${id}.toml`;
    for (const authority of files.has(own) ? trustedBy(own) : trusted) {
      const place = `evidence/${id}.${slug(authority.name)}.tsr`;
      answers.push(await verify(authority, place, `${id}, and all that was registered before it`, { document: utf8(chain) }));
    }
  }
  return answers;
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

async function tick(section: HTMLElement, registration: string): Promise<void> {
  const list = element("ul", HTMLUListElement, section);
  const state = element("[role=status]", HTMLElement, section);
  const row = ({ ok, says }: Pick<Verified, "ok" | "says">) => {
    const [text, kind] = MARKS[`${ok}`];
    return make("li", { children: [make("span", { class: `verdict ${kind}`, text }), ` ${says}`] });
  };
  try {
    const answers = await verifyTokens(registration);
    const good = answers.filter(({ ok }) => ok).length;
    list.replaceChildren(...answers.map(row));
    state.textContent = `Your browser verified ${good} of ${answers.length} tokens just now.`;
    const left = new Set(answers.map((one) => one.notChecked).filter(Boolean));
    if (left.size) element(".unchecked small", HTMLElement, section).textContent = [...left].join(" ");
  } catch (error) {
    list.replaceChildren(row({ ok: false, says: messageOf(error) }));
    state.textContent = "Your browser could not verify the tokens.";
  }
}

/** What can be said of a file that somebody holds. */
async function compare(file: File, registration: string, document: string): Promise<[boolean, string]> {
  const found = await sha256(new Uint8Array(await file.arrayBuffer()));
  const { files } = await Registration.load(registration);
  const known = await Promise.all([...files].map(async ([name, bytes]) => [name, await sha256(bytes)] as const));
  const same = known.filter(([, hash]) => hash === found).map(([name]) => name);
  if (found === document && !same.length) same.push("the document that was frozen");
  const told = `SHA-256 ${found}`;
  if (same.length) return [true, `${file.name} is, byte for byte, ${same.join(" and ")} of this registration (${told}).`];
  const [place, hash] = known.find(([name]) => name.split("/").pop() === file.name) ?? [];
  if (place) return [false, `${file.name} is not the registered ${place}: its ${told}, expected ${hash}.`];
  return [false, `${file.name} is none of the ${known.length} registered files (${told}).`];
}

function takeFiles(section: HTMLElement, registration: string): void {
  const answer = element("[role=status]", HTMLElement, section);
  const input = element("input[type=file]", HTMLInputElement, section);
  const take = async (file: File | undefined) => {
    if (!file) return;
    const [isOne, words] = await compare(file, registration, section.dataset["document"] ?? "");
    const [text, kind] = isOne ? ["registered", "good"] : ["not registered", "bad"];
    answer.replaceChildren(make("span", { class: `verdict ${kind}`, text }), ` ${words}`);
    section.scrollIntoView({ block: "nearest" });
  };
  const tried = (file: File | undefined) => take(file).catch((error: unknown) => (answer.textContent = String(error)));
  input.addEventListener("change", () => void tried(input.files?.[0]));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    void tried(event.dataTransfer?.files[0]);
  });
  section.hidden = false;
}

const section = document.querySelector<HTMLElement>("section.tokens");
if (section) {
  const registration = section.dataset["registration"] ?? "";
  void tick(section, registration);
  takeFiles(element(".holding", HTMLElement), registration);
}
