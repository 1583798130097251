/** An exploratory what-if: another threshold, another reading, or without some seeds. It decides nothing. */

import { truthWord } from "./agreement";
import { type Document, type Evidence, named } from "./evidence";
import { asRecorded } from "./interval";
import { bodyOf, make, messageOf, tableOf } from "./page";
import { Redecision } from "./redecision";
import { Fraction } from "./fraction";
import { Missing, Series, type Value } from "./value";

// A minus after an operator, a comma or a bracket belongs to its number.
const NUMBER = /(?<![\w.])(?:(?<=[(,<>=]\s*)-)?\d+(?:\.\d+)?/g;
const LABEL = "not registered – exploratory";

export class WhatIf {
  readonly element = make("details", { class: "whatif" });
  private readonly result = make("div");
  private readonly dropped = new Map<string, HTMLInputElement>();
  private readonly tests = new Map<string, HTMLInputElement>();
  private readonly reading = make("select");

  constructor(private readonly evidence: Evidence) {
    const { document } = evidence;
    const rule = named(document.rules, document.rule);
    const form = make("form", { class: "decide-form" });
    for (const seed of new Set(Object.values(document.endpoints).flatMap(({ by, seeds }) => (by === "seed" ? seeds : []))))
      this.dropped.set(`${seed}`, this.field(form, "checkbox", `without seed ${seed}`));
    for (const { id, test, text } of rule.criteria)
      for (const [at, [number]] of [...test.matchAll(NUMBER)].entries()) {
        const field = this.field(form, "text", `${text.replace(/\.$/, "")}: ${number}`);
        field.value = number;
        field.pattern = "-?[0-9]+([.][0-9]+)?";
        this.tests.set(`${id} ${at}`, field);
      }
    const readings = Object.keys(rule.readings);
    for (const name of readings) this.reading.append(new Option(name, name, false, name === rule.binding));
    if (readings.length)
      form.append(make("label", { children: [make("span", { text: "Reading that binds" }), this.reading] }));
    form.addEventListener("input", () => this.decide(form));
    form.addEventListener("submit", (event) => event.preventDefault());
    this.element.append(make("summary", { text: `What if? (${LABEL})` }), form, this.result);
    this.element.addEventListener("toggle", () => this.decide(form));
  }

  private field(form: HTMLElement, type: string, words: string): HTMLInputElement {
    const field = make("input");
    field.type = type;
    form.append(make("label", { children: [make("span", { text: words }), field] }));
    return field;
  }

  private decide(form: HTMLFormElement): void {
    if (!form.checkValidity()) return this.result.replaceChildren(make("p", { class: "note", text: "A threshold is a number, as 0.03 or -0.03." }));
    const { rows } = this.evidence;
    const document = this.changed();
    const intervals = new Map(Object.entries(document.intervals).map(([name, spec]) => [name, asRecorded(spec)]));
    try {
      const { criteria, estimate, verdict } = new Redecision({ document, rows }, intervals).decide(document.rule);
      const lines = criteria.map(({ criterion, value, holds }) => [criterion.test, shown(value), truthWord(holds)]);
      if (estimate) lines.push(["estimate", shown(estimate), ""]);
      this.result.replaceChildren(
        make("p", { class: "note", text: `${LABEL}. It would be: ${verdict.replaceAll("_", " ")}. Its rules and its data are not those of the verdict above.` }),
        tableOf(["Test", "Value", "Would hold"], bodyOf(lines), LABEL),
      );
    } catch (error) {
      this.result.replaceChildren(make("p", { class: "note", text: `${messageOf(error)}.` }));
    }
  }

  /** The document as the reader would have it; an interval does not know of a seed that is left out. */
  private changed(): Document {
    const document = structuredClone(this.evidence.document);
    const out = new Set([...this.dropped].filter(([, { checked }]) => checked).map(([seed]) => Number(seed)));
    const kept = <T>(of: T[], seed: (one: T) => number) => of.filter((one) => !out.has(seed(one)));
    for (const endpoint of Object.values(document.endpoints)) {
      if (endpoint.by !== "seed" || !out.size) continue;
      endpoint.seeds = kept(endpoint.seeds, (seed) => seed);
      endpoint.runs = kept(endpoint.runs, ({ seed }) => seed);
      endpoint.members = endpoint.seeds.map(String);
    }
    const reason = "without these seeds there is no recorded interval";
    if (out.size) for (const spec of Object.values(document.intervals)) spec.recorded = { missing: [reason], not_run: false };
    const rule = named(document.rules, document.rule);
    if (this.reading.value) rule.binding = this.reading.value;
    rule.criteria = rule.criteria.filter(({ reading }) => !reading || reading === rule.binding);
    for (const criterion of rule.criteria) {
      let at = 0;
      criterion.test = criterion.test.replace(NUMBER, (number) => this.tests.get(`${criterion.id} ${at++}`)?.value ?? number);
    }
    return document;
  }
}

function shown(value: Value | null): string {
  if (value instanceof Series) return value.items.map(([key, member]) => `${key}: ${shown(member)}`).join(", ");
  return value instanceof Fraction ? value.toNumber().toFixed(5) : value instanceof Missing ? value.reasons.join("; ") : "–";
}
