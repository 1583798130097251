/** On a rule's page: takes the steps of the chain on opening, and decides again as the reader wishes. */

import { disagreements } from "./agreement";
import { Chain, STEPS, type Step, type StepName } from "./chain";
import { evaluate } from "./evaluation";
import { type Evidence, type Said, readValue, writeValue } from "./evidence";
import { parse } from "./expression";
import { type Choice, intervalsOf } from "./interval";
import { block, element, make } from "./page";
import { Redecision } from "./redecision";
import { fillRows } from "./rowlists";
import { WhatIf } from "./whatif";
import { Workbench } from "./workbench";

async function redecide(evidence: Evidence, choice: Choice, pause?: (done: number) => Promise<void>) {
  const intervals = await intervalsOf(evidence, choice, pause);
  const outcome = new Redecision(evidence, intervals).decide(evidence.document.rule);
  return { evidence, outcome, intervals, disagreements: disagreements(evidence.document, outcome, intervals) };
}

declare global {
  /** What this page decides with, for whoever wants to check it: a test, or a reader at the console. */
  var toolkitDecide: object;
}
globalThis.toolkitDecide = { Chain, redecide, parse, evaluate, readValue, writeValue };

const WORDS = { good: "✓", bad: "✗", open: "○" };

function show(list: HTMLElement, name: StepName, { state, says }: Step): void {
  const item = element(`[data-step="${name}"]`, HTMLElement, list);
  item.dataset["state"] = state;
  element(".mark", HTMLElement, item).textContent = WORDS[state];
  element(".says", HTMLElement, item).textContent = says;
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
  const [bad, open] = [of("bad"), of("open")];
  summary.dataset["state"] = bad.length ? "bad" : open.length ? "open" : "good";
  const rest = open.length ? `, open: ${open.join(", ")}` : "";
  const words = bad.length
    ? `Not as it should be: ${bad.join(", ")}`
    : `Decided again here: ${of("good").length} of ${STEPS.length} steps hold${rest}`;
  element("a", HTMLElement, summary).textContent = `${words}.`;
  if (of("bad").includes("files") || of("bad").includes("registration")) return;
  const { evidence } = await chain.read();
  fillRows(document, evidence);
  const bench = new Workbench(evidence.document, (choice, pause) => redecide(evidence, choice, pause));
  element(".decide-place", HTMLElement, section).replaceChildren(bench.element, make("div", { children: [new WhatIf(evidence).element] }));
}

if (typeof document !== "undefined")
  for (const section of document.querySelectorAll<HTMLElement>("section.decide"))
    start(section).catch((error: unknown) => console.error(error));
