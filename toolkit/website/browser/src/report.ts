/** What was reached with intervals resampled here, beside what is recorded. */

import { type IntervalSpec, named } from "./evidence";
import { type Fraction, fixed } from "./fraction";
import { ERRORS, type Interval, agree, apart, asRecorded } from "./interval";
import { type Cell, bodyOf, make, spelt, tableOf } from "./page";
import { Missing } from "./value";
import type { Reached } from "./workbench";

/** The result in a sentence, whether all of it is as recorded, and the intervals behind it. */
export function report(reached: Reached): { words: string; agrees: boolean; content: Node[] } {
  const { document } = reached.evidence;
  const recorded = named(document.recorded, document.rule);
  const agrees = reached.disagreements.length === 0;
  const words =
    `Reached here: ${spelt(reached.outcome.verdict)}. Recorded: ${spelt(recorded.verdict)}. ` +
    (agrees ? "They agree, in every criterion." : "THEY DISAGREE: see below.");
  const content = [
    ...disagreement(reached),
    ...notes("Close call here", reached.outcome.closeCalls),
    ...notes("Close call recorded", recorded.close_calls),
    ...intervals(reached),
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

function intervals({ evidence: { document }, intervals }: Reached): Node[] {
  const rows = Object.entries(document.intervals).map(([name, spec]): Cell[] => {
    const here = intervals.get(name);
    const there = asRecorded(spec);
    if (!here || here instanceof Missing || there instanceof Missing)
      return [name, here instanceof Missing ? here.reasons.join("; ") : "–", "–", "–"];
    const verdict = here.from ? compared(here, spec) : "not resampled: taken as recorded";
    return [`${name}, ${Number(spec.level) * 100}%`, ends(here), ends(there), verdict];
  });
  if (!rows.length) return [];
  const drawn = [...intervals.values()].find((one): one is Interval => !(one instanceof Missing) && !!one.from);
  const unit = Object.values(document.intervals).map(made)[0] ?? "";
  const note = drawn?.from
    ? `Registered: ${unit}. Drawn here: ${drawn.from.resampled.means.length.toLocaleString("en")} resamples from seed ${drawn.from.seed}, ` +
      "with another random generator than the recorded ones, so that the ends cannot be the same to the last digit. " +
      `Behind ± stands the Monte Carlo standard error of an end. Ends agree if no more resamples lie between them than ${ERRORS} standard errors of that number.`
    : `Registered: ${unit}.`;
  return [
    make("h3", { text: "Intervals" }),
    tableOf(["Interval", "Here", "Recorded", "Agreement"], bodyOf(rows), "Intervals, here and recorded"),
    make("p", { class: "note", text: note }),
  ];
}

/** How an interval is made, in words. */
function made({ method, resamples, resampled, crossing }: IntervalSpec): string {
  const of = resampled.length ? ` of ${resampled.join("; ")}, ${crossing}` : "";
  return resamples ? `${method}, ${resamples} resamples${of}` : method;
}

function compared(here: Interval, spec: IntervalSpec): string {
  const far = Math.max(...apart(here, spec));
  const words = agree(here, spec) ? "agree" : "DISAGREE";
  return `${words}: at most ${far.toFixed(1)} standard errors apart`;
}

function ends({ low, high, errors }: Interval): Node {
  const end = (value: Fraction, error: Fraction | undefined) =>
    `${value.lt(0) ? "" : "+"}${fixed(value)}${error ? ` ± ${fixed(error)}` : ""}`;
  return make("span", { class: "num", text: `[${end(low, errors?.[0])}, ${end(high, errors?.[1])}]` });
}

/** What was read, and that episodes and rows say the same; where they do not, nothing is decided at all. */
function read({ evidence, intervals }: Reached): Node[] {
  const rows = [...evidence.rows].map(([register, of]) => `${of.length.toLocaleString("en")} rows of ${register}`);
  const counted = new Set([...intervals.values()].flatMap((one) => (one instanceof Missing ? [] : (one.from?.counted ?? []))));
  const words = [...counted].map(
    ({ episodes, places, successes }) =>
      `${episodes.toLocaleString("en")} episodes of ${places.toLocaleString("en")} evaluations, ` +
      `${successes.toLocaleString("en")} of them successes: their sums are the counts of the rows, each of them`,
  );
  return [make("p", { text: `Read: ${[...rows, ...words].join("; ")}.` })];
}

function notes(label: string, calls: readonly string[]): Node[] {
  return calls.map((call) => make("p", { class: "note", children: [make("strong", { text: `${label}: ` }), `${call}.`] }));
}
