/** The widget that decides again: a seed, a number of resamples, a button, and what comes of it. */

import { type Evidence, type IntervalSpec, named } from "./evidence";
import { type Choice, ERRORS, type Interval, type Intervals, type Pause } from "./interval";
import { agree, apart, asRecorded, intervalsOf } from "./interval";
import { type Cell, bodyOf, button, labelled, make, messageOf, note, spelt, tableOf } from "./page";
import { type Disagreement, type Outcome, Redecision } from "./redecision";
import { type Fraction, Missing, fixed } from "./value";

const FEWEST = 100;
const MOST = 1_000_000;
const LARGEST_SEED = 2n ** 64n - 1n;

class Stopped extends Error {}

/** What was reached here. */
interface Reached {
  evidence: Evidence;
  outcome: Outcome;
  intervals: Intervals;
  disagreements: readonly Disagreement[];
}

/** Decide again with intervals resampled here. */
export async function redecide(evidence: Evidence, choice: Choice, pause?: Pause): Promise<Reached> {
  const { rule } = evidence.document;
  const intervals = await intervalsOf(evidence, choice, pause);
  const decided = new Redecision(evidence, intervals);
  return { evidence, outcome: decided.decide(rule), intervals, disagreements: decided.disagreements(rule) };
}

export function workbench(evidence: Evidence): HTMLElement {
  const isDrawn = ({ recorded }: IntervalSpec) => "low" in recorded && recorded.low_error;
  const drawn = Object.values(evidence.document.intervals).find(isDrawn);
  const { rng_seed: value, resamples: number } = drawn ?? { rng_seed: "0", resamples: FEWEST };
  const ofSeed = { inputMode: "numeric", pattern: "[0-9]{1,20}", title: "A whole number from 0", autocomplete: "off" } as const;
  const seed = make("input", { ...ofSeed, required: true, value });
  const [min, max] = [`${Math.min(FEWEST, number)}`, `${Math.max(MOST, number)}`];
  const resamples = make("input", { type: "number", required: true, min, max, value: `${number}` });
  const fields = drawn ? [labelled("Seed", seed), labelled("Resamples", resamples)] : [];
  const go = make("button", { text: "Decide it again here", type: "submit" });
  let isStopped = false;
  const stop = button("Stop", () => (isStopped = true));
  const bar = make("progress", { max: 1, ariaLabel: "Share of the resamples drawn" });
  const form = make("form", { class: "decide-form", children: [...fields, go, stop, bar] });
  const said = make("p", { class: "decide-status", role: "status", ariaLive: "polite" });
  const result = make("div", { class: "decide-result" });
  const element = make("div", { class: "workbench", children: [form, said, result] });

  const say = (words: string, state: string) => {
    said.textContent = words;
    element.dataset["state"] = state;
  };
  const working = (is: boolean) => {
    isStopped = false;
    go.disabled = is;
    bar.hidden = stop.hidden = !is;
    bar.value = 0;
    element.ariaBusy = `${is}`;
  };
  /** Let the page breathe: draw what is done, and take a click on Stop. */
  const pause = async (done: number) => {
    bar.value = done;
    await new Promise((resolve) => setTimeout(resolve));
    if (isStopped) throw new Stopped();
  };
  const run = async () => {
    working(true);
    say("Deciding …", "working");
    const asked = drawn ? BigInt(seed.value) : 0n;
    const chosen = { seed: asked > LARGEST_SEED ? LARGEST_SEED : asked, resamples: resamples.valueAsNumber };
    try {
      const { words, agrees, content } = report(await redecide(evidence, drawn ? chosen : {}, pause));
      say(words, agrees ? "agrees" : "disagrees");
      result.replaceChildren(...content);
    } catch (error) {
      result.replaceChildren();
      if (error instanceof Stopped) say("Stopped.", "stopped");
      else say(`It cannot be decided here: ${messageOf(error)}.`, "failed");
    } finally {
      working(false);
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void run();
  });
  working(false);
  return element;
}

/** The result in a sentence, whether all of it is as recorded, and the intervals behind it. */
function report(reached: Reached): { words: string; agrees: boolean; content: Node[] } {
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
    const far = Math.max(...apart(here, spec)).toFixed(1);
    const compared = `${agree(here, spec) ? "agree" : "DISAGREE"}: at most ${far} standard errors apart`;
    const verdict = here.from ? compared : "not resampled: taken as recorded";
    return [`${name}, ${Number(spec.level) * 100}%`, ends(here), ends(there), verdict];
  });
  if (!rows.length) return [];
  const drawn = [...intervals.values()].find((one): one is Interval => !(one instanceof Missing) && !!one.from);
  const unit = Object.values(document.intervals).map(made)[0] ?? "";
  const words = drawn?.from
    ? `Registered: ${unit}. Drawn here: ${drawn.from.means.length.toLocaleString("en")} resamples from seed ${drawn.from.seed}, ` +
      "with another random generator than the recorded ones, so that the ends cannot be the same to the last digit. " +
      `Behind ± stands the Monte Carlo standard error of an end. Ends agree if no more resamples lie between them than ${ERRORS} standard errors of that number.`
    : `Registered: ${unit}.`;
  return [
    make("h3", { text: "Intervals" }),
    tableOf(["Interval", "Here", "Recorded", "Agreement"], bodyOf(rows), "Intervals, here and recorded"),
    note(words),
  ];
}

/** How an interval is made, in words. */
function made({ method, resamples, resampled, crossing }: IntervalSpec): string {
  const of = resampled.length ? ` of ${resampled.join("; ")}, ${crossing}` : "";
  return resamples ? `${method}, ${resamples} resamples${of}` : method;
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
