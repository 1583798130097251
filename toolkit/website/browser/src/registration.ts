/** A registration's files, each held against the hash that the freeze, or the chain of later files, gives it. */

import { parse as parseToml } from "smol-toml";
import { type Book, readBook } from "./book";
import { bytesOf, leftBy, sha256 } from "./registers";

/** The registration that a study's manifest names. */
export interface Reference {
  name: string;
  sha256: string;
  amendments: Record<string, string>;
}

/** What is not as it was said to be, with both sides. */
export class Mismatch extends Error {
  constructor(what: string, expected: unknown, found: unknown) {
    super(`${what}: expected ${expected}, found ${found}`);
  }
}

/** Hold two sides against each other. */
export function hold(what: string, expected: unknown, found: unknown): void {
  if (expected !== found) throw new Mismatch(what, expected, found);
}

export class Registration {
  private constructor(private readonly files: Record<string, string>) {}

  static async load(name: string): Promise<Registration> {
    return new Registration(await leftBy<Record<string, string>>(`registrations/${name}`));
  }

  /** The book that its rules and amendments make, whether or not their hashes were looked at. */
  book(): Book {
    return readBook(this.text("rules.toml"), this.amendments().map((name) => this.text(name)));
  }

  /** Hash every file; throws at the first that is not the recorded one, and returns how many there are. */
  async check({ sha256: frozen, amendments }: Reference): Promise<number> {
    await this.holds("FROZEN.sha256", frozen);
    const listed = lines(this.text("FROZEN.sha256"));
    for (const [recorded = "", name = ""] of listed) await this.holds(name, recorded);
    const later = lines(this.text("LATER.chain"));
    let link = frozen;
    for (const [next, recorded = "", name = ""] of later) {
      link = (await sha256(bytes(`${link}\n${recorded}  ${name}\n`))) ?? "";
      hold(`The link of ${name} in LATER.chain`, link, next);
      await this.holds(name, recorded);
    }
    for (const [id, recorded] of Object.entries(amendments)) await this.holds(`amendments/${id}.toml`, recorded);
    const record = parseToml(this.text("record.toml"));
    // Rules that restate a document frozen elsewhere have the hash of that one in their record.
    if (record["document_place"] === "FROZEN.sha256") hold("The hash in record.toml", frozen, record["document_sha256"]);
    return listed.length + later.length + 2;
  }

  private amendments(): string[] {
    const chain = "LATER.chain" in this.files ? lines(this.text("LATER.chain")) : [];
    return chain.map(([, , name = ""]) => name).filter((name) => name.startsWith("amendments/"));
  }

  private async holds(name: string, recorded: string): Promise<void> {
    hold(`SHA-256 of ${name}`, recorded, await sha256(this.bytes(name)));
  }

  private text(name: string): string {
    return new TextDecoder().decode(this.bytes(name));
  }

  private bytes(name: string): Uint8Array<ArrayBuffer> {
    const held = this.files[name];
    if (held === undefined) throw new Error(`the registration has no file ${name}`);
    return bytesOf(held);
  }
}

/** A text as UTF-8. */
export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;
}

function lines(text: string): string[][] {
  return text.split("\n").filter(Boolean).map((line) => line.split("  "));
}
