/** On a rule's page: decides the rule again from the rows that the page carries. */

import { disagreements } from "./agreement";
import { evaluate } from "./evaluation";
import { type Document, type Evidence, type Row, readValue, writeValue } from "./evidence";
import { parse } from "./expression";
import { type Choice, type Interval, intervalsOf } from "./interval";
import { block } from "./page";
import { rowsOf } from "./parquet";
import { Redecision } from "./redecision";
import type { Missing } from "./value";
import { Workbench } from "./workbench";

/** A file of the page: `rows` of a register, or `episodes` of an endpoint. */
interface Carried {
  table: string;
  of: string;
  address: string;
}

async function unpack(document: Document, files: readonly Carried[]): Promise<Evidence> {
  const tables = { rows: new Map<string, Row[]>(), episodes: new Map<string, Row[]>() };
  for (const { table, of, address } of files) {
    if (table !== "rows" && table !== "episodes") throw new Error(`the page carries an unknown table: ${table}`);
    tables[table].set(of, await rowsOf(address));
  }
  return { document, ...tables };
}

async function redecide(evidence: Evidence, choice: Choice, pause?: (done: number) => Promise<void>) {
  const intervals: Map<string, Interval | Missing> = await intervalsOf(evidence, choice, pause);
  const outcome = new Redecision(evidence, intervals).decide(evidence.document.rule);
  return { outcome, intervals, disagreements: disagreements(evidence.document, outcome, intervals) };
}

const toolkitDecide = { unpack, redecide, parse, evaluate, readValue, writeValue };

declare global {
  /** What this page decides with, for whoever wants to check it: a test, or a reader at the console. */
  var toolkitDecide: object;
}
globalThis.toolkitDecide = toolkitDecide;

for (const section of document.querySelectorAll<HTMLElement>("section.decide")) {
  const links = [...section.querySelectorAll<HTMLAnchorElement>("a[data-table]")];
  const files = links.map((a) => ({ table: a.dataset["table"] ?? "", of: a.dataset["of"] ?? "", address: a.href }));
  const carried = block<Document>(".decide-evidence", section);
  let evidence: Promise<Evidence> | undefined;
  const bench = new Workbench(carried, async (choice, pause) => {
    evidence ??= unpack(carried, files);
    return { evidence: await evidence, ...(await redecide(await evidence, choice, pause)) };
  });
  section.querySelector(".decide-place")?.replaceChildren(bench.element);
}
