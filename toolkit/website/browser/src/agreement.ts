/** What was reached here, held against what is recorded. */

import { type Document, named, readValue, writeValue } from "./evidence";
import { Fraction } from "./fraction";
import { type Intervals, agree } from "./interval";
import type { Outcome } from "./redecision";
import { Missing, type Value } from "./value";

export interface Disagreement {
  text: string;
  /** Whether other random numbers explain it: it is among the close calls. */
  byChance: boolean;
}

/** Where they differ; nothing where they agree. */
export function disagreements(document: Document, outcome: Outcome, intervals: Intervals): Disagreement[] {
  const recorded = named(document.recorded, document.rule);
  const calls = [...outcome.closeCalls, ...recorded.close_calls];
  const found: Disagreement[] = [];
  const hold = (what: string, here: unknown, there: unknown, byChance: boolean) => {
    if (here !== there) found.push({ text: `${what}: ${here} here, ${there} recorded`, byChance });
  };
  recorded.criteria.forEach((there, i) => {
    const here = outcome.criteria[i];
    if (!here) return;
    const starts = [`${there.id} `, ...here.criterion.names.map((name) => `${name}: `)];
    const isClose = calls.some((call) => starts.some((start) => call.startsWith(start)));
    hold(`Criterion ${there.id}`, truthWord(here.holds), truthWord(readValue(there.holds)), isClose);
    // Where a test reads an interval, its numbers differ with the seed.
    if (!here.criterion.names.some((name) => Object.hasOwn(document.intervals, name)))
      hold(`The value of ${there.id}`, text(here.value), text(readValue(there.value)), false);
  });
  // A verdict is turned by chance where each criterion that was turned is, and one was.
  const turned = found.length > 0 && found.every(({ byChance }) => byChance);
  hold("The verdict", outcome.verdict, recorded.verdict, turned);
  hold("The original verdict", outcome.originalVerdict, recorded.original_verdict, turned);
  for (const [reading, reached] of Object.entries(recorded.readings))
    hold(`The reading ${reading}`, outcome.readings[reading], reached, turned);
  const isClose = calls.some((call) => call.startsWith("the evidence could turn"));
  hold("The evidence", outcome.evidence, recorded.evidence, isClose);
  hold("The estimate", text(outcome.estimate), text(readValue(recorded.estimate)), false);
  for (const [name, spec] of Object.entries(document.intervals)) {
    const here = intervals.get(name);
    const explained = "lies further from the recorded one than its Monte Carlo errors explain";
    if (here && !(here instanceof Missing) && !agree(here, spec))
      found.push({ text: `The interval ${name} ${explained}`, byChance: false });
  }
  return found;
}

/** A truth, in words. */
export function truthWord(truth: Value | null | undefined): string {
  if (truth instanceof Missing) return "unknown";
  return truth === true ? "holds" : truth === false ? "does not hold" : "–";
}

function text(value: Value | null): string {
  if (value instanceof Fraction) return value.toFraction();
  if (value instanceof Missing) return "unknown"; // why, each says in its own words
  return JSON.stringify(writeValue(value));
}
