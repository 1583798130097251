/** What was reached here beside what is recorded, for a reader to compare line by line. */

import { type Disagreement, restsOnChance, truthWord } from "./agreement";
import { type Document, type Evidence, type IntervalSpec, named, readValue } from "./evidence";
import { Fraction } from "./fraction";
import { ERRORS, type Interval, agree, apart, asRecorded } from "./interval";
import { type Cell, asNode, make, tableOf } from "./page";
import type { Outcome } from "./redecision";
import { Missing, Series, type Value } from "./value";

const LARGEST_COUNT = 1_000_000n;
const GOOD = ["pass", "met", "holds"];
const BAD = ["miss", "missed", "does not hold"];
const MIXED = ["partially_met", "superseded"];

/** What was reached here. */
export interface Reached {
  evidence: Evidence;
  outcome: Outcome;
  intervals: ReadonlyMap<string, Interval | Missing>;
  disagreements: readonly Disagreement[];
}

/** The result in a sentence, whether all of it is as recorded, and the tables behind it. */
export function report(document: Document, reached: Reached): { words: string; agrees: boolean; content: Node[] } {
  const recorded = named(document.recorded, document.rule);
  const agrees = reached.disagreements.length === 0;
  const words =
    `Reached here: ${plain(reached.outcome.verdict)}. Recorded: ${plain(recorded.verdict)}. ` +
    (agrees ? "They agree, in every criterion." : "THEY DISAGREE: see below.");
  const content = [
    ...disagreement(reached),
    ...notes("Close call here", reached.outcome.closeCalls),
    ...notes("Close call recorded", recorded.close_calls),
    ...criteria(document, reached),
    ...readings(document, reached),
    ...estimate(document, reached),
    ...intervals(document, reached),
    ...tests(document),
    ...read(reached),
  ];
  return { words, agrees, content };
}

function disagreement({ disagreements }: Reached): Node[] {
  if (!disagreements.length) return [];
  const items = disagreements.map(({ text }) => make("li", { text: `${text}.` }));
  const why = disagreements.every(({ byChance }) => byChance)
    ? "It is a close call: other random numbers turn it."
    : "Random numbers do not explain this. Please report it, with the address of this page.";
  const heading = make("p", { children: [make("strong", { text: "What is reached here is not what is recorded." })] });
  return [make("div", { class: "disagrees", children: [heading, make("ul", { children: items }), make("p", { text: why })] })];
}

function criteria(document: Document, { outcome }: Reached): Node[] {
  const recorded = named(document.recorded, document.rule);
  const rows = outcome.criteria.map(({ criterion, value, holds }, i) => {
    const there = recorded.criteria[i];
    const name = make("span", { text: criterion.text });
    const test = make("code", { text: criterion.test });
    const reading = criterion.reading ? make("small", { text: ` (reading: ${criterion.reading}) ` }) : "";
    const cell = make("span", { children: [name, ...(reading ? [reading] : []), make("br"), test] });
    if (restsOnChance(document, criterion.names)) cell.append(make("br"), make("small", { text: "rests on an interval" }));
    if (holds instanceof Missing) cell.append(make("br"), make("small", { text: `missing: ${holds.reasons.join("; ")}` }));
    return [
      cell,
      shown(value),
      shown(there ? readValue(there.value) : null),
      tag(truthWord(holds)),
      tag(truthWord(there ? readValue(there.holds) : null)),
    ];
  });
  return [
    make("h3", { text: "Criteria" }),
    tableOf(["Criterion", "Value here", "Value recorded", "Here", "Recorded"], rows, "Criteria, here and recorded"),
  ];
}

function readings(document: Document, { outcome }: Reached): Node[] {
  const recorded = named(document.recorded, document.rule);
  const names = Object.keys(outcome.readings);
  if (!names.length) return [];
  const rows = names.map((name) => [name, tag(outcome.readings[name] ?? ""), tag(recorded.readings[name] ?? "")]);
  return [make("h3", { text: "Readings" }), tableOf(["Reading", "Here", "Recorded"], rows, "Readings, here and recorded")];
}

function estimate(document: Document, { outcome }: Reached): Node[] {
  const rule = named(document.rules, document.rule);
  if (!rule.estimate) return [];
  const { title } = document.statistics[rule.estimate] ?? named(document.endpoints, rule.estimate);
  const there = readValue(named(document.recorded, document.rule).estimate);
  const rows = [[title, shown(outcome.estimate), shown(there)]];
  return [make("h3", { text: "Estimate" }), tableOf(["Mean", "Here", "Recorded"], rows, "Estimate, here and recorded")];
}

function intervals(document: Document, reached: Reached): Node[] {
  const rows: Cell[][] = [];
  for (const [name, spec] of Object.entries(document.intervals)) {
    const here = reached.intervals.get(name);
    if (!here || here instanceof Missing || "missing" in spec.recorded) {
      rows.push([name, here instanceof Missing ? here.reasons.join("; ") : "–", "–", "–"]);
      continue;
    }
    const there = asRecorded(spec.recorded);
    const level = `${name}, ${Fraction.read(spec.level).toNumber() * 100}%`;
    const verdict = here.from ? compared(here, spec) : "not resampled: taken as recorded";
    rows.push([level, ends(here), ends(there), verdict]);
  }
  if (!rows.length) return [];
  const drawn = [...reached.intervals.values()].find((one): one is Interval => !(one instanceof Missing) && !!one.from);
  const unit = Object.values(document.intervals).map(made)[0] ?? "";
  const note = drawn?.from
    ? `Registered: ${unit}. Drawn here: ${drawn.from.resampled.means.length.toLocaleString("en")} resamples from seed ${drawn.from.seed}, ` +
      "with another random generator than the recorded ones, so that the ends cannot be the same to the last digit. " +
      `Behind ± stands the Monte Carlo standard error of an end. Ends agree if no more resamples lie between them than ${ERRORS} standard errors of that number.`
    : `Registered: ${unit}.`;
  return [
    make("h3", { text: "Intervals" }),
    tableOf(["Interval", "Here", "Recorded", "Agreement"], rows, "Intervals, here and recorded"),
    make("p", { class: "note", text: note }),
  ];
}

/** How an interval is made, in words. */
function made({ method, resamples, resampled, crossing }: IntervalSpec): string {
  const of = resampled.length ? ` of ${resampled.join("; ")}, ${crossing}` : "";
  return resamples ? `${method}, ${resamples} resamples${of}` : method;
}

function tests(document: Document): Node[] {
  const rows = Object.entries(document.tests).map(([name, { made, p, adjusted }]) => {
    return [`${name}: ${made}`, shown(readValue(p)), shown(readValue(adjusted)), "not made again: taken as recorded"];
  });
  if (!rows.length) return [];
  const label = "Tests of significance, as recorded";
  return [
    make("h3", { text: "Tests of significance" }),
    tableOf(["Test", "p recorded", "Adjusted, recorded", "Agreement"], rows, label),
  ];
}

function compared(here: Interval, spec: IntervalSpec): string {
  const far = Math.max(...apart(here, spec));
  const words = agree(here, spec) ? "agree" : "DISAGREE";
  return `${words}: at most ${far.toFixed(1)} standard errors apart`;
}

function ends({ low, high, errors }: Interval): Node {
  const end = (value: Fraction, error: Fraction | undefined) =>
    `${signed(value)}${error ? ` ± ${error.toNumber().toFixed(5)}` : ""}`;
  return make("span", { class: "num", text: `[${end(low, errors?.[0])}, ${end(high, errors?.[1])}]` });
}

/** What was read, and that episodes and rows say the same; where they do not, nothing is decided at all. */
function read({ evidence, intervals }: Reached): Node[] {
  const rows = [...evidence.rows].map(([register, of]) => `${of.length.toLocaleString("en")} rows of ${register}`);
  const counted = new Set([...intervals.values()].map((one) => (one instanceof Missing ? undefined : one.from?.counted)));
  const played = [...counted].filter((one) => one !== undefined);
  const words = played.map(
    (one) =>
      `${one.episodes.toLocaleString("en")} episodes of ${one.places.toLocaleString("en")} evaluations, ` +
      `${one.successes.toLocaleString("en")} of them successes: their sums are the counts of the rows, each of them`,
  );
  return [make("p", { text: `Read: ${[...rows, ...words].join("; ")}.` })];
}

function notes(label: string, calls: readonly string[]): Node[] {
  return calls.map((call) =>
    make("p", { class: "note", children: [make("strong", { text: `${label}: ` }), document.createTextNode(`${call}.`)] }),
  );
}

function shown(value: Value | null): Cell {
  if (value === null || typeof value === "boolean") return "–";
  if (value instanceof Missing) return "unknown";
  if (value instanceof Series) {
    const members = value.items.map(([key, member]) =>
      make("span", {
        class: "member",
        children: [make("span", { class: "key", text: key }), document.createTextNode(" "), asNode(shown(member))],
      }),
    );
    return make("span", { children: members });
  }
  const decimal = value.toNumber().toFixed(5);
  return value.below <= LARGEST_COUNT && value.below > 1n ? `${decimal} (${value})` : decimal;
}

function signed(value: Fraction): string {
  const number = value.toNumber();
  return `${number < 0 ? "" : "+"}${number.toFixed(5)}`;
}

function tag(word: string): Node {
  const kind = GOOD.includes(word) ? "good" : BAD.includes(word) ? "bad" : MIXED.includes(word) ? "mixed" : "plain";
  return make("span", { class: `verdict ${kind}`, text: plain(word) });
}

function plain(word: string): string {
  return word.replaceAll("_", " ");
}
