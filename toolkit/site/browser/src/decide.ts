/** On a rule's page: takes the steps from the verdict to what was timestamped, and decides again as the reader wishes. */

import { readBook } from "./book";
import { canHash, sha256, utf8 } from "./bytes";
import { evaluate } from "./evaluation";
import { type Document, type Evidence, type Row, type Said, readValue, writeValue } from "./evidence";
import { parse } from "./expression";
import { intervalsOf } from "./interval";
import { rowsRead } from "./measure";
import { block, bodyOf, count, element, load, make, messageOf, spelt, tableOf } from "./page";
import { columnsFor, evidenceOf } from "./reading";
import { Redecision } from "./redecision";
import { type Manifest, catalogue, manifestText, rowsOf, table } from "./registers";
import { FROZEN, Mismatch, Registration, hold } from "./registration";
import { holdShown, holdWords } from "./shown";
import { Fraction, Missing, exact, ofDouble } from "./value";
import { whatIf } from "./whatif";
import { redecide, workbench } from "./workbench";

const STEPS = ["files", "rows", "manifest", "registration", "tokens"] as const;
type StepName = (typeof STEPS)[number];

/** How a step came out; open: nothing could be said. */
interface Step {
  state: "good" | "bad" | "open";
  says: string;
}

// Nothing here follows from the study's seeds, so that its rows are not part of what a study says.
const OF_LAUNCHES = "launches";
const UNHASHED = "open: this browser hashes nothing on a page from this address; open it over https or from a folder";
// Columns that say which row it is.
const KEY = ["arm", "seed", "run_id", "trajectory", "step"];
const WORDS = { good: "✓", bad: "✗", open: "○" };

const short = (hash: string) => `${hash.slice(0, 12)}…`;

/** The chain of one page; what a step reads, later ones use. */
class Chain {
  private known?: Promise<{ registration: Registration; evidence: Evidence }>;

  constructor(private readonly said: Said, private readonly page: ParentNode) {}

  /** What the rule is decided on; read once. */
  read() {
    this.known ??= (async () => {
      const registration = await Registration.load(this.said.registration.name);
      const book = readBook(registration.text("rules.toml"), registration.amendments());
      return { registration, evidence: await evidenceOf(this.said, book) };
    })();
    return this.known;
  }

  /** Take a step; what it throws is what it found wrong. */
  async take(name: StepName): Promise<Step> {
    if (name !== "rows" && name !== "tokens" && !canHash()) return { state: "open", says: UNHASHED };
    try {
      const said = await this[name]();
      return typeof said === "string" ? { state: "good", says: said } : said;
    } catch (error) {
      return { state: "bad", says: `${messageOf(error)}.` };
    }
  }

  /** 1. Every register file that is read is the one that the manifest names. */
  private async files(): Promise<string> {
    const { study } = this.said;
    const { files } = await this.manifestRead();
    const tables = await catalogue(study);
    const { evidence } = await this.read();
    const names = new Set([...evidence.rows.keys(), "decisions", "intervals"]);
    const read = Object.entries(tables).flatMap(([name, { files }]) => (names.has(name) ? files : []));
    let size = 0;
    for (const file of read) {
      hold(`${file.file} in the list of files`, files[file.file]?.sha256, file.sha256);
      await rowsOf(study, file, []); // hashed as it is opened
      size += file.bytes;
    }
    const kilobytes = Math.ceil(size / 1000).toLocaleString("en");
    return `${count(read.length, "register file")} (${kilobytes} kB) hashed here: each has the SHA-256 that the manifest names.`;
  }

  /** 2. The rule is decided again from these rows, and gives all that the page shows. */
  private async rows(): Promise<string> {
    const { evidence } = await this.read();
    const { document } = evidence;
    const intervals = await intervalsOf(evidence);
    const decided = new Redecision(evidence, intervals);
    const found = Object.keys(document.rules).flatMap((rule) =>
      decided.disagreements(rule).map(({ text }) => `${rule}: ${text}`),
    );
    if (found.length) throw new Error(`Decided here from the rows, it is not what this page records. ${found.join("; ")}`);
    const shown = holdShown(this.page, evidence, decided);
    const recorded = await this.register(document);
    const unproven = [...intervals].filter(([name, one]) => !(one instanceof Missing) && !recorded.intervals.has(name));
    const taken = [
      ...Object.keys(document.tests).map((name) => `the p-value of ${name}`),
      ...unproven.map(([name]) => `the interval ${name}`),
    ];
    const read = new Set(Object.entries(document.endpoints).flatMap(([name, of]) => rowsRead(name, of, evidence.rows)));
    const open = taken.length ? ` Taken as recorded, in no register: ${taken.join(", ")}.` : "";
    return (
      `Decided again from ${count(read.size, "row")}, in exact fractions: ${spelt(decided.decide(document.rule).verdict)}. ` +
        `${count(shown, "value")} that this page shows ${shown === 1 ? "is" : "are"} what came out${recorded.words}.${open}`
    );
  }

  /** Hold what the page records against the registers of decisions and of published intervals, where there are any. */
  private async register({ study, intervals, recorded }: Document): Promise<{ words: string; intervals: Set<string> }> {
    const tables = await catalogue(study);
    const read = async (name: string) => (tables[name] ? table(study, name) : []);
    const held = new Set<string>();
    const hasEnds = (name: string, row: Row) => {
      const ends = this.said.intervals[name];
      if (!ends || "missing" in ends) return;
      for (const end of ["low", "high"] as const) {
        const [here, there] = [exact(ends[end]), row[end] as number];
        if (!here.equals(exact(there)) && !here.equals(ofDouble(there)))
          throw new Mismatch(`The ${end} end of ${name} in the register`, there, here.valueOf());
      }
      held.add(name);
    };
    for (const row of await read("intervals"))
      for (const [name, { endpoint, level }] of Object.entries(intervals))
        if (endpoint === row["endpoint"] && exact(level).equals(exact(row["level"] as number))) hasEnds(name, row);
    for (const row of await read("decisions")) {
      const [name, interval] = [String(row["rule"]), String(row["interval"])];
      if (interval in intervals) hasEnds(interval, row);
      const known = recorded[name];
      if (!known) continue;
      hold(`The verdict of ${name} in the register of decisions`, row["verdict"], known.verdict);
      hold(`The evidence of ${name} in the register of decisions`, row["evidence"], known.evidence);
      const estimate = readValue(known.estimate);
      const value = estimate instanceof Fraction ? estimate.valueOf() : 0;
      if (Math.abs(Number(row["estimate"] ?? 0) - value) > 1e-12 * Math.abs(value))
        throw new Mismatch(`The estimate of ${name} in the register of decisions`, row["estimate"], value);
    }
    return { words: tables["decisions"] ? ", and what the register of decisions says" : "", intervals: held };
  }

  /** 3. The manifest is whole, names the registration, and says of all rows what the page says. */
  private async manifest(): Promise<string> {
    const text = await manifestText(this.said.study);
    const { seal, ...rest } = (await this.manifestRead()) as Manifest & Record<string, unknown>;
    const { registration, tables } = rest;
    hold("The manifest's seal", await hashOf(rest), seal);
    hold("The registration that the manifest names", registration.name, this.said.registration.name);
    hold("The frozen files that the manifest names", registration.sha256, this.said.registration.sha256);
    const said = ["study", "evidence", "schema_version", "registration", "words"].map((name) => [name, rest[name]]);
    const ofRows = Object.fromEntries(Object.entries(tables).map(([name, { row_sha256 }]) => [name, row_sha256]));
    const { [OF_LAUNCHES]: _, ...following } = ofRows;
    const logical = await hashOf({ ...Object.fromEntries(said), tables: following });
    hold("What the study's rows say, as a hash", logical, this.said.rows_sha256);
    const { name, sha256: frozen } = registration;
    const hashes: Record<string, string> = { ...ofRows, rows: this.said.rows_sha256, registration: frozen };
    for (const shown of this.page.querySelectorAll<HTMLElement>("[data-hash]"))
      hold(`The hash shown of ${shown.dataset["hash"]}`, hashes[shown.dataset["hash"] ?? ""], shown.textContent);
    return (
      `MANIFEST.json (SHA-256 ${short(await sha256(utf8(text)))}) keeps its seal, and names the registration ${name} as frozen (${short(frozen)}). ` +
        "No token covers it: that these rows are what ran, only another run shows."
    );
  }

  /** 4. The registration's files are the frozen ones, and the page shows their words. */
  private async registration(): Promise<string> {
    const { name, sha256: frozen, amendments } = (await this.manifestRead()).registration;
    const { registration, evidence } = await this.read();
    await registration.holds(FROZEN, frozen);
    const listed = await registration.check();
    for (const [id, recorded] of Object.entries(amendments)) await registration.holds(`amendments/${id}.toml`, recorded);
    const record = registration.toml<Record<string, unknown>>("record.toml");
    // Rules that restate a document frozen elsewhere have the hash of that one in their record.
    if (record["document_place"] === FROZEN) hold("The hash in record.toml", frozen, record["document_sha256"]);
    const number = listed.frozen + listed.later.length + 2; // and the two lists
    const words = holdWords(this.page, evidence.document);
    return (
      `${count(number, "file")} of the registration ${name} hashed here, each as frozen or chained after the freeze; ` +
        `the rule was decided as they say, and ${count(words, "text")} of this page ${words === 1 ? "is" : "are"} theirs.`
    );
  }

  /** 5. Timestamps cover the frozen files. */
  private async tokens(): Promise<string | Step> {
    await load("tokens.js").catch(() => {}); // a site need not have it
    const tokens = (await globalThis.verifyTokens?.(this.said.registration.name)) ?? [];
    const [wrong, held] = [tokens.find(({ ok }) => ok === false), tokens.filter(({ ok }) => ok)];
    if (wrong) return { state: "bad", says: wrong.says };
    const [first] = held;
    if (!first) return { state: "open", says: `open: not checked here. ${tokens[0]?.says ?? ""}` };
    return `${held.length} of ${count(tokens.length, "token")} verified here. ${first.says} ${first.notChecked}`;
  }

  private async manifestRead(): Promise<Manifest> {
    return JSON.parse(await manifestText(this.said.study)) as Manifest;
  }
}

/** The SHA-256 of a document's canonical JSON: keys sorted, no spaces. */
async function hashOf(document: unknown): Promise<string> {
  const sorted = (_: string, value: unknown): unknown =>
    value && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return sha256(utf8(JSON.stringify(document, sorted)));
}

/** Let every list of rows fill itself when a reader opens it. */
function fillRows({ document: { endpoints }, rows }: Evidence): void {
  for (const details of document.querySelectorAll<HTMLDetailsElement>("details[data-endpoint]")) {
    const name = details.dataset["endpoint"] ?? "";
    const endpoint = endpoints[name];
    const holder = details.querySelector(".rows-here");
    if (!endpoint || !holder) continue;
    const fill = () => {
      if (!details.open || holder.hasChildNodes()) return;
      const read = rowsRead(name, endpoint, rows);
      const columns = [...new Set([...KEY, ...columnsFor(endpoint)])].filter((column) => read.some((row) => column in row));
      const cells = read.map((row) => columns.map((column) => make("span", { class: "num", text: `${row[column] ?? "–"}` })));
      holder.append(tableOf(columns, bodyOf(cells), `Rows of ${name}`));
    };
    details.addEventListener("toggle", fill);
    fill();
  }
}

async function start(section: HTMLElement): Promise<void> {
  const said = block<Said>(".decide-evidence", section);
  const chain = new Chain(said, document);
  const [list, summary] = [element(".chain", HTMLElement, section), element(".proof", HTMLElement)];
  const names: Record<Step["state"], StepName[]> = { good: [], bad: [], open: [] };
  for (const name of STEPS) {
    await new Promise((resolve) => setTimeout(resolve)); // the page is drawn between two steps
    const { state, says } = await chain.take(name);
    const item = element(`[data-step="${name}"]`, HTMLElement, list);
    item.dataset["state"] = state;
    element(".mark", HTMLElement, item).textContent = WORDS[state];
    element(".says", HTMLElement, item).textContent = says;
    names[state].push(name);
  }
  const { good, bad, open } = names;
  summary.dataset["state"] = bad.length ? "bad" : open.length ? "open" : "good";
  const rest = open.length ? `, open: ${open.join(", ")}` : "";
  const words = bad.length
    ? `Not as it should be: ${bad.join(", ")}`
    : `Decided again here: ${good.length} of ${STEPS.length} steps hold${rest}`;
  element("a", HTMLElement, summary).textContent = `${words}.`;
  if (bad.includes("files") || bad.includes("registration")) return;
  const { evidence } = await chain.read();
  fillRows(evidence);
  const widgets = [workbench(evidence), make("div", { children: [whatIf(evidence)] })];
  element(".decide-place", HTMLElement, section).replaceChildren(...widgets);
}

declare global {
  /** What this page decides with, for whoever wants to check it: a test, or a reader at the console. */
  var toolkitDecide: object;
}
globalThis.toolkitDecide = { Chain, redecide, parse, evaluate, readValue, writeValue, catalogue, rowsOf, table };

if (typeof document !== "undefined")
  for (const section of document.querySelectorAll<HTMLElement>("section.decide"))
    start(section).catch((error: unknown) => console.error(error));
