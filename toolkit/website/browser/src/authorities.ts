/** The tokens of a registration: what each authority signed, and whether it holds. */

import { type Bytes, canHash, fromBase64, utf8 } from "./bytes";
import { FROZEN, Registration } from "./registration";
import { type Material, UNCHECKED, verifyToken } from "./timestamp";

/** What was verified of one authority's token. */
export interface Verified {
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

const CERTIFICATES = /^evidence\/.*\.(?:pem|crt|cer)$/i;

/** Verify every token of a registration: those of its freeze, and those of what was added later. */
export async function verifyTokens(name: string): Promise<Verified[]> {
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
