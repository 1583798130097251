/** On a rule's page: takes the steps of the chain on opening, and decides again as the reader wishes. */

import { Chain, STEPS, type Step, type StepName } from "./chain";
import { evaluate } from "./evaluation";
import { type Evidence, type Said, readValue, writeValue } from "./evidence";
import { parse } from "./expression";
import { block, bodyOf, element, make, tableOf } from "./page";
import { rowsRead } from "./measure";
import { columnsFor } from "./reading";
import { whatIf } from "./whatif";
import { redecide, workbench } from "./workbench";

declare global {
  /** What this page decides with, for whoever wants to check it: a test, or a reader at the console. */
  var toolkitDecide: object;
}
globalThis.toolkitDecide = { Chain, redecide, parse, evaluate, readValue, writeValue };

// Columns that say which row it is.
const KEY = ["arm", "seed", "run_id", "trajectory", "step"];
const WORDS = { good: "✓", bad: "✗", open: "○" };

function show(list: HTMLElement, name: StepName, { state, says }: Step): void {
  const item = element(`[data-step="${name}"]`, HTMLElement, list);
  item.dataset["state"] = state;
  element(".mark", HTMLElement, item).textContent = WORDS[state];
  element(".says", HTMLElement, item).textContent = says;
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
  const taken: [StepName, Step][] = [];
  for (const name of STEPS) {
    await new Promise((resolve) => setTimeout(resolve)); // the page is drawn between two steps
    const step = await chain.take(name);
    show(list, name, step);
    taken.push([name, step]);
  }
  const of = (state: Step["state"]) => taken.filter(([, step]) => step.state === state).map(([name]) => name);
  const [good, bad, open] = [of("good"), of("bad"), of("open")];
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

if (typeof document !== "undefined")
  for (const section of document.querySelectorAll<HTMLElement>("section.decide"))
    start(section).catch((error: unknown) => console.error(error));
