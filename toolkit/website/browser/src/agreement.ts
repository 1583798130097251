/** What was reached here, held against what is recorded. */

import { type Document, named, readValue, writeValue } from "./evidence";
import { Fraction } from "./fraction";
import { type Interval, agree, asRecorded } from "./interval";
import type { Outcome } from "./redecision";
import { Missing, type Value } from "./value";

/** Where they differ, each in a sentence; nothing where they agree. */
export function disagreements(
  document: Document,
  outcome: Outcome,
  intervals: ReadonlyMap<string, Interval | Missing>,
): string[] {
  const recorded = named(document.recorded, document.rule);
  const found: string[] = [];
  const hold = (what: string, here: unknown, there: unknown) => {
    if (here !== there) found.push(`${what}: ${here} here, ${there} recorded`);
  };
  hold("The verdict", outcome.verdict, recorded.verdict);
  hold("The original verdict", outcome.originalVerdict, recorded.original_verdict);
  hold("The evidence", outcome.evidence, recorded.evidence);
  for (const [reading, reached] of Object.entries(recorded.readings))
    hold(`The reading ${reading}`, outcome.readings[reading], reached);
  recorded.criteria.forEach((there, i) => {
    const here = outcome.criteria[i];
    if (!here) return;
    hold(`Criterion ${there.id}`, truthWord(here.holds), truthWord(readValue(there.holds)));
    if (!restsOnChance(document, here.criterion.names))
      hold(`The value of ${there.id}`, text(here.value), text(readValue(there.value)));
  });
  hold("The estimate", text(outcome.estimate), text(readValue(recorded.estimate)));
  for (const [name, spec] of Object.entries(document.intervals)) {
    const here = intervals.get(name);
    const there = "missing" in spec.recorded ? null : asRecorded(spec.recorded);
    if (here && !(here instanceof Missing) && there && !agree(here, there))
      found.push(`The interval ${name} lies further from the recorded one than its Monte Carlo errors explain`);
  }
  return found;
}

/** Whether a test reads an interval: its numbers then differ with the seed. */
export function restsOnChance(document: Document, names: readonly string[]): boolean {
  return names.some((name) => Object.hasOwn(document.intervals, name));
}

/** A truth, in words. */
export function truthWord(truth: Value | null | undefined): string {
  if (truth instanceof Missing) return "unknown";
  return truth === true ? "holds" : truth === false ? "does not hold" : "–";
}

function text(value: Value | null): string {
  if (value instanceof Fraction) return value.toString();
  return JSON.stringify(writeValue(value));
}
