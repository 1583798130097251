/** The widget: a seed, a number of resamples, a button, and what comes of it. */

import { disagreements } from "./agreement";
import type { Evidence } from "./evidence";
import { type Choice, type Pause, intervalsOf } from "./interval";
import { button, make, messageOf } from "./page";
import { Redecision } from "./redecision";
import { type Reached, report } from "./report";

const FEWEST = 100;
const MOST = 1_000_000;
const LARGEST_SEED = 2n ** 64n - 1n;

class Stopped extends Error {}

/** Decide again with intervals resampled here. */
export async function redecide(evidence: Evidence, choice: Choice, pause?: Pause): Promise<Reached> {
  const { document } = evidence;
  const intervals = await intervalsOf(evidence, choice, pause);
  const outcome = new Redecision(evidence, intervals).decide(document.rule);
  return { evidence, outcome, intervals, disagreements: disagreements(document, outcome, intervals) };
}

export class Workbench {
  readonly element = make("div", { class: "workbench" });
  private readonly button = make("button", { text: "Decide it again here" });
  private readonly stop = button("Stop", () => (this.isStopped = true));
  private readonly bar = make("progress");
  private readonly said = make("p", { class: "decide-status" });
  private readonly result = make("div", { class: "decide-result" });
  private readonly seed = make("input");
  private readonly resamples = make("input");
  private isStopped = false;

  constructor(private readonly evidence: Evidence) {
    const form = make("form", { class: "decide-form" });
    const specs = Object.values(evidence.document.intervals);
    const first = specs.find(({ recorded }) => "low" in recorded && recorded.low_error);
    if (first) form.append(...this.fields(first.rng_seed, first.resamples));
    this.button.type = "submit";
    this.stop.hidden = true;
    this.bar.max = 1;
    this.bar.hidden = true;
    this.bar.setAttribute("aria-label", "Share of the resamples drawn");
    this.said.setAttribute("role", "status");
    this.said.setAttribute("aria-live", "polite");
    form.append(this.button, this.stop, this.bar);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.run();
    });
    this.element.append(form, this.said, this.result);
  }

  private fields(seed: string, resamples: number): Node[] {
    this.seed.inputMode = "numeric";
    this.seed.pattern = "[0-9]{1,20}";
    this.seed.required = true;
    this.seed.value = seed;
    this.seed.title = "A whole number from 0";
    this.seed.autocomplete = "off";
    this.resamples.type = "number";
    this.resamples.min = `${Math.min(FEWEST, resamples)}`;
    this.resamples.max = `${Math.max(MOST, resamples)}`;
    this.resamples.required = true;
    this.resamples.value = `${resamples}`;
    return [
      make("label", { children: [make("span", { text: "Seed" }), this.seed] }),
      make("label", { children: [make("span", { text: "Resamples" }), this.resamples] }),
    ];
  }

  private choice(): Choice {
    if (!this.seed.value) return {};
    const seed = BigInt(this.seed.value);
    return { seed: seed > LARGEST_SEED ? LARGEST_SEED : seed, resamples: this.resamples.valueAsNumber };
  }

  private async run(): Promise<void> {
    this.working(true);
    try {
      const reached = await redecide(this.evidence, this.choice(), (done) => this.pause(done));
      const { words, agrees, content } = report(reached);
      this.say(words, agrees ? "agrees" : "disagrees");
      this.result.replaceChildren(...content);
    } catch (error) {
      this.result.replaceChildren();
      if (error instanceof Stopped) this.say("Stopped.", "stopped");
      else this.say(`It cannot be decided here: ${messageOf(error)}.`, "failed");
    } finally {
      this.working(false);
    }
  }

  /** Let the page breathe: draw what is done, and take a click on Stop. */
  private async pause(done: number): Promise<void> {
    this.bar.value = done;
    await new Promise((resolve) => setTimeout(resolve));
    if (this.isStopped) throw new Stopped();
  }

  private working(is: boolean): void {
    this.isStopped = false;
    this.button.disabled = is;
    this.bar.hidden = this.stop.hidden = !is;
    this.bar.value = 0;
    this.element.setAttribute("aria-busy", `${is}`);
    if (is) this.say("Deciding …", "working");
  }

  private say(words: string, state: string): void {
    this.said.textContent = words;
    this.element.dataset["state"] = state;
  }
}
