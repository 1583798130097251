/** Recorded episodes, stepped through call by call; of several side by side, what they share is marked. */

import { button, make, spelt } from "./page";

const PACE = 1200;

/** Episodes of a page, `details.pair`, each with one or more sides, shown up to a step. */
export class Player {
  private step = 1;
  private timer: number | undefined;
  private readonly pairs: HTMLDetailsElement[];
  private readonly choice: HTMLSelectElement;
  private readonly slider = make("input", { type: "range", min: "1" });
  private readonly play = button("Play", () => this.toggle());
  private readonly status = make("p", { class: "status", role: "status" });
  private chosen: HTMLDetailsElement | undefined;

  constructor(place: HTMLElement) {
    this.pairs = [...place.querySelectorAll<HTMLDetailsElement>("details.pair")];
    const named = this.pairs.map((pair, at) => new Option(pair.dataset["title"] ?? "", String(at)));
    this.choice = make("select", { children: named, onchange: () => this.open(Number(this.choice.value)) });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    place.classList.add("playing");
    place.prepend(this.controls(), this.status);
    place.addEventListener("keydown", (event) => this.key(event));
    this.open(0);
  }

  private controls(): HTMLElement {
    // What stays on one line, however narrow the page.
    const together = (...children: HTMLElement[]) => make("span", { class: "together", children });
    const steps = [button("Previous", () => this.go(this.step - 1)), this.play, button("Next", () => this.go(this.step + 1))];
    const call = make("label", { text: "Call ", children: [this.slider] });
    const episodes = make("label", { text: "Episodes ", children: [this.choice] });
    const children = [episodes, together(...steps), together(call, button("All", () => this.go(this.last)))];
    return make("div", { class: "controls", children });
  }

  private get lists(): HTMLElement[][] {
    const lists = this.chosen?.querySelectorAll("ol.calls") ?? [];
    return [...lists].map((list) => [...list.querySelectorAll<HTMLElement>(":scope > li")]);
  }

  private get last(): number {
    return Math.max(1, ...this.lists.map((calls) => calls.length));
  }

  private open(at: number): void {
    this.stop();
    for (const pair of this.pairs) pair.hidden = pair !== this.pairs[at];
    this.chosen = this.pairs[at];
    if (this.chosen) this.chosen.open = true;
    this.slider.max = String(this.last);
    this.go(1);
  }

  private go(step: number): void {
    this.step = Math.min(Math.max(1, step), this.last);
    this.slider.value = String(this.step);
    const lists = this.lists;
    const keys = lists.map((calls) => calls[this.step - 1]?.dataset["key"] || null);
    for (const [side, calls] of lists.entries()) {
      for (const [at, call] of calls.entries()) {
        call.hidden = at >= this.step;
        call.classList.toggle("now", at === this.step - 1);
        const key = call.dataset["key"];
        // What the other agent asks now, and this one has asked by now: both met one draw.
        call.classList.toggle("same", at < this.step && !!key && keys.some((other, n) => n !== side && other === key));
      }
    }
    for (const end of this.chosen?.querySelectorAll<HTMLElement>(".side > .end") ?? []) end.hidden = this.step < this.last;
    this.status.textContent = this.told(lists, keys);
    if (this.step === this.last) this.stop();
  }

  private told(lists: HTMLElement[][], keys: (string | null)[]): string {
    const arms = [...(this.chosen?.querySelectorAll<HTMLElement>(".side") ?? [])].map((side) => side.dataset["arm"] ?? "");
    const said = lists.map((calls, side) => {
      const tool = calls[this.step - 1]?.querySelector(".tool")?.textContent;
      return `${spelt(arms[side] ?? "")}: ${tool ?? "has ended"}`;
    });
    const same = keys.length > 1 && keys[0] !== null && keys.every((key) => key === keys[0]);
    return `Call ${this.step} of ${this.last}. ${said.join("; ")}.${same ? " Both ask for the same event, and meet the same draw." : ""}`;
  }

  private key(event: KeyboardEvent): void {
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) return; // they have arrows of their own
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!way || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.go(this.step + way);
  }

  private toggle(): void {
    if (this.timer !== undefined) return this.stop();
    if (this.step === this.last) this.go(1);
    this.play.textContent = "Pause";
    this.timer = window.setInterval(() => this.go(this.step + 1), PACE);
  }

  private stop(): void {
    window.clearInterval(this.timer);
    this.timer = undefined;
    this.play.textContent = "Play";
  }
}
