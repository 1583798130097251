/** The widget that decides again: a seed, a number of resamples, a button, and what comes of it. */

import { type Disagreement, disagreements } from "./agreement";
import type { Evidence, IntervalSpec } from "./evidence";
import { type Choice, type Intervals, type Pause, intervalsOf } from "./interval";
import { button, labelled, make, messageOf } from "./page";
import { type Outcome, Redecision } from "./redecision";
import { report } from "./report";

const FEWEST = 100;
const MOST = 1_000_000;
const LARGEST_SEED = 2n ** 64n - 1n;

class Stopped extends Error {}

/** What was reached here. */
export interface Reached {
  evidence: Evidence;
  outcome: Outcome;
  intervals: Intervals;
  disagreements: readonly Disagreement[];
}

/** Decide again with intervals resampled here. */
export async function redecide(evidence: Evidence, choice: Choice, pause?: Pause): Promise<Reached> {
  const { document } = evidence;
  const intervals = await intervalsOf(evidence, choice, pause);
  const outcome = new Redecision(evidence, intervals).decide(document.rule);
  return { evidence, outcome, intervals, disagreements: disagreements(document, outcome, intervals) };
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
