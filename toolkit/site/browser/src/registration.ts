/** A registration's files, each held against the hash that the freeze, or the chain of later files, gives it. */

import { parse } from "smol-toml";
import { type Bytes, fromBase64, sha256, utf8 } from "./bytes";
import { leftBy } from "./registers";

export const FROZEN = "FROZEN.sha256";
const CHAIN = "LATER.chain";
const LINE = /^([0-9a-f]{64}) {2}(?:([0-9a-f]{64}) {2})?(.+)$/;

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
  private constructor(readonly files: ReadonlyMap<string, Bytes>) {}

  /** All files of a registration that this site carries, by their place in it. */
  static async load(name: string): Promise<Registration> {
    const held = Object.entries(await leftBy<Record<string, string>>(`registrations/${name}`));
    return new Registration(new Map(held.map(([place, text]) => [place, fromBase64(text)])));
  }

  /** Hash every listed file; throws at the first that differs. Returns the chain's text up to each later file, too. */
  async check(): Promise<{ frozen: number; later: { name: string; chain: string }[] }> {
    const frozen = this.lines(FROZEN);
    for (const { first, name } of frozen) await this.holds(name, first);
    let [link, chain] = [await sha256(this.bytes(FROZEN)), ""];
    const later = [];
    for (const { first, second, name, line } of this.lines(CHAIN)) {
      link = await sha256(utf8(`${link}\n${second}  ${name}\n`));
      hold(`The link of ${name} in ${CHAIN}`, link, first);
      await this.holds(name, second);
      chain += `${line}\n`;
      later.push({ name, chain });
    }
    return { frozen: frozen.length, later };
  }

  /** The texts of its amendments, in their order, whether or not their hashes were looked at. */
  amendments(): string[] {
    const later = this.files.has(CHAIN) ? this.lines(CHAIN) : [];
    return later.filter(({ name }) => name.startsWith("amendments/")).map(({ name }) => this.text(name));
  }

  /** Hold a file against a hash. */
  async holds(name: string, recorded: string): Promise<void> {
    hold(`SHA-256 of ${name}`, recorded, await sha256(this.bytes(name)));
  }

  toml<T>(name: string): T {
    return parse(this.text(name)) as T;
  }

  text(name: string): string {
    return new TextDecoder().decode(this.bytes(name));
  }

  private bytes(name: string): Bytes {
    const held = this.files.get(name);
    if (!held) throw new Error(`the registration has no file ${name} on this site`);
    return held;
  }

  private lines(list: string) {
    const kept = this.text(list).split("\n").filter(Boolean);
    return kept.map((line) => {
      const [, first, second = "", name] = LINE.exec(line) ?? [];
      if (!first || !name) throw new Error(`${list} has a line that it cannot have`);
      return { first, second, name, line };
    });
  }
}
