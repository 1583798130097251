/** An exploratory what-if: another threshold, another reading, or without some seeds. It decides nothing. */

import { type Document, type Evidence, named } from "./evidence";
import { asRecorded } from "./interval";
import { type Cell, bodyOf, labelled, make, messageOf, note, spelt, tableOf } from "./page";
import { Redecision, truthWord } from "./redecision";
import { Fraction, Missing, Series, type Value, fixed } from "./value";

// A minus after an operator, a comma or a bracket belongs to its number.
const NUMBER = /(?<![\w.])(?:(?<=[(,<>=]\s*)-)?\d+(?:\.\d+)?/g;
const LABEL = "not registered – exploratory";

/** The form of a rule's page, and what would come of its choices. */
export function whatIf({ document, rows }: Evidence): HTMLElement {
  const rule = named(document.rules, document.rule);
  const seeds = new Set(Object.values(document.endpoints).flatMap(({ by, seeds }) => (by === "seed" ? seeds : [])));
  const dropped = new Map([...seeds].map((seed) => [seed, make("input", { type: "checkbox" })]));
  const numbers = rule.criteria.map(({ test }) =>
    [...test.matchAll(NUMBER)].map(([value]) => make("input", { type: "text", value, pattern: "-?[0-9]+([.][0-9]+)?" })),
  );
  const readings = Object.keys(rule.readings);
  const reading = make("select", { children: readings.map((name) => new Option(name, name, false, name === rule.binding)) });
  const result = make("div");
  const form = make("form", {
    class: "decide-form",
    children: [
      ...[...dropped].map(([seed, field]) => labelled(`without seed ${seed}`, field)),
      ...rule.criteria.flatMap(({ text }, i) =>
        (numbers[i] ?? []).map((field) => labelled(`${text.replace(/\.$/, "")}: ${field.value}`, field)),
      ),
      ...(readings.length ? [labelled("Reading that binds", reading)] : []),
    ],
  });

  const decide = (): Cell[] => {
    if (!form.checkValidity()) return [note("A threshold is a number, as 0.03 or -0.03.")];
    const out = [...dropped].filter(([, { checked }]) => checked).map(([seed]) => seed);
    const changed = without(document, out);
    const asked = named(changed.rules, document.rule);
    asked.criteria.forEach((criterion, i) => {
      let at = 0;
      criterion.test = criterion.test.replace(NUMBER, (number) => numbers[i]?.[at++]?.value ?? number);
    });
    asked.binding = reading.value || asked.binding;
    asked.criteria = asked.criteria.filter((one) => !one.reading || one.reading === asked.binding);
    const intervals = new Map(Object.entries(changed.intervals).map(([name, spec]) => [name, asRecorded(spec)]));
    const { criteria, estimate, verdict } = new Redecision({ document: changed, rows }, intervals).decide(document.rule);
    const lines = criteria.map(({ criterion, value, holds }) => [criterion.test, shown(value), truthWord(holds)]);
    if (estimate) lines.push(["estimate", shown(estimate), ""]);
    const words = `It would be: ${spelt(verdict)}. Its rules and its data are not those of the verdict above.`;
    return [note(`${LABEL}. ${words}`), tableOf(["Test", "Value", "Would hold"], bodyOf(lines), LABEL)];
  };
  const show = () => {
    try {
      result.replaceChildren(...decide());
    } catch (error) {
      result.replaceChildren(note(`${messageOf(error)}.`));
    }
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  const summary = make("summary", { text: `What if? (${LABEL})` });
  return make("details", { class: "whatif", ontoggle: show, children: [summary, form, result] });
}

/** A copy of the document without some seeds; an interval does not know of a seed that is left out. */
function without(document: Document, out: readonly number[]): Document {
  const copy = structuredClone(document);
  if (!out.length) return copy;
  for (const endpoint of Object.values(copy.endpoints)) {
    if (endpoint.by !== "seed") continue;
    endpoint.seeds = endpoint.seeds.filter((seed) => !out.includes(seed));
    endpoint.runs = endpoint.runs.filter(({ seed }) => !out.includes(seed));
  }
  const missing = ["without these seeds there is no recorded interval"];
  for (const spec of Object.values(copy.intervals)) spec.recorded = { missing, not_run: false };
  return copy;
}

function shown(value: Value | null): string {
  if (value instanceof Series) return value.items.map(([key, member]) => `${key}: ${shown(member)}`).join(", ");
  return value instanceof Fraction ? fixed(value) : value instanceof Missing ? value.reasons.join("; ") : "–";
}
