/** On a run's page: its recorded episodes as a list to filter; the address keeps the filters. */

import { block, element, make } from "./page";
import { type Row, file, rows } from "./registers";

interface Source {
  study: string;
  path: string;
  run: string;
}

/** Columns that say where an episode stands; the first ones are filters, and `replay` takes all but the pool. */
const PLACE = ["phase", "pool", "regime", "step", "task", "schedule"] as const;
const WORDS = ["phase", "pool", "regime", "step"] as const;
const FAULT = /^(transient|rate_limit|outage|stale_read|truncation|timeout_after_commit|field_dropout)$/;
const AT_ONCE = 50;

type Filters = Map<string, string>;

const text = (value: unknown): string => (value === null || value === undefined ? "" : String(value));
const words = (name: string): string => name.replaceAll("_", " ");

function outcome(row: Row): string {
  if (row["true_success"] !== true) return "failed";
  return row["observed_reward"] === false ? "succeeded, graded a failure" : "succeeded";
}

function faults(row: Row): string {
  const met = Object.keys(row).filter((name) => FAULT.test(name) && Number(row[name]) > 0);
  return met.map((name) => (Number(row[name]) > 1 ? `${text(row[name])} × ${words(name)}` : words(name))).join(", ");
}

/** The command that plays an episode again; what is no plain word is quoted for a shell. */
function command(source: Source, row: Row): string {
  const quoted = (word: string): string => (/^[\w.-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);
  const place = PLACE.filter((name) => name !== "pool").map((name) => `--${name} ${quoted(text(row[name]))}`);
  return `toolkit episode replay --study ${quoted(source.study)} --run ${quoted(source.run)} ${place.join(" ")}`;
}

function matches(row: Row, filters: Filters): boolean {
  for (const [name, wanted] of filters) {
    if (wanted && wanted !== (name === "outcome" ? (row["true_success"] === true ? "succeeded" : "failed") : text(row[name]))) return false;
  }
  return true;
}

function fromAddress(names: readonly string[]): Filters {
  const said = new URLSearchParams(location.hash.slice(1));
  return new Map(names.map((name) => [name, said.get(name) ?? ""]));
}

function toAddress(filters: Filters): void {
  const said = new URLSearchParams([...filters].filter(([, value]) => value));
  history.replaceState(null, "", said.size ? `#${said}` : location.pathname + location.search);
}

class List {
  private filters: Filters = new Map();
  private shown = AT_ONCE;
  private readonly fields = new Map<string, HTMLSelectElement | HTMLInputElement>();
  private readonly status = make("p", { class: "status" });
  private readonly body = make("tbody");
  private readonly more = make("button", { text: `Show ${AT_ONCE} more` });

  constructor(
    private readonly place: HTMLElement,
    private readonly source: Source,
    private readonly all: Row[],
    private readonly checked: boolean,
  ) {
    this.status.setAttribute("role", "status");
    this.more.type = "button";
    this.more.addEventListener("click", () => {
      this.shown += AT_ONCE;
      this.draw();
    });
    place.replaceChildren(this.form(), this.status, this.table(), this.more);
    addEventListener("hashchange", () => this.follow());
    this.follow();
  }

  /** Take the filters from the address, and go to the list where there are any. */
  private follow(): void {
    this.filters = fromAddress([...this.fields.keys()]);
    for (const [name, field] of this.fields) {
      field.value = this.filters.get(name) ?? "";
      this.filters.set(name, field.value); // a word that no episode has is not a filter
    }
    this.shown = AT_ONCE;
    this.draw();
    if ([...this.filters.values()].some(Boolean)) (this.place.closest("section") ?? this.place).scrollIntoView();
  }

  private form(): HTMLElement {
    const form = make("form", { class: "filters" });
    for (const name of WORDS) {
      const values = [...new Set(this.all.map((row) => text(row[name])))];
      const sorted = name === "step" ? values.sort((a, b) => Number(a) - Number(b)) : values.sort();
      form.append(this.select(name, sorted));
    }
    form.append(this.select("outcome", ["succeeded", "failed"]));
    const task = make("input");
    task.type = "number";
    task.min = "0";
    form.append(this.field("task", task));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => {
      for (const [name, field] of this.fields) this.filters.set(name, field.value);
      toAddress(this.filters);
      this.shown = AT_ONCE;
      this.draw();
    });
    return form;
  }

  private select(name: string, values: string[]): HTMLElement {
    const select = make("select");
    select.append(new Option("all", ""), ...values.map((value) => new Option(words(value), value)));
    return this.field(name, select);
  }

  private field(name: string, field: HTMLSelectElement | HTMLInputElement): HTMLElement {
    this.fields.set(name, field);
    field.name = name;
    return make("label", { text: `${name} `, children: [field] });
  }

  private table(): HTMLElement {
    const heads = ["set", "step", "task", "schedule", "outcome", "calls", "faults that landed", "play it again"];
    const head = make("tr", { children: heads.map((words) => make("th", { text: words })) });
    for (const cell of head.children) cell.setAttribute("scope", "col");
    const table = make("table", { class: "rows", children: [make("thead", { children: [head] }), this.body] });
    const scroll = make("div", { class: "scroll", children: [table] });
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Episodes");
    return scroll;
  }

  private draw(): void {
    const found = this.all.filter((row) => matches(row, this.filters));
    const won = found.filter((row) => row["true_success"] === true).length;
    const set = [...this.filters].filter(([, value]) => value).map(([name, value]) => `${name} ${value}`);
    const which = set.length ? `: ${set.join(", ")}` : " in all";
    const trust = this.checked ? "" : " This browser could not hold the file against the manifest.";
    this.status.textContent = `${found.length} ${found.length === 1 ? "episode" : "episodes"} of ${this.source.run.slice(0, 120)}${which}; ${won} succeeded.${trust}`;
    this.body.replaceChildren(...found.slice(0, this.shown).map((row) => this.line(row)));
    this.more.hidden = found.length <= this.shown;
  }

  private line(row: Row): HTMLElement {
    const cells = [
      [row["phase"], row["pool"], row["regime"]].map((value) => words(text(value))).join(" "),
      text(row["step"]),
      text(row["task"]),
      text(row["schedule"]),
      outcome(row),
      text(row["calls"]) || "–",
      faults(row) || "–",
    ].map((value) => make("td", { text: value }));
    const seed = text(row["schedule_seed"]);
    if (seed) cells[3]?.setAttribute("title", `schedule seed ${seed}`);
    const folded = [make("summary", { text: "command" }), make("code", { text: command(this.source, row) })];
    cells.push(make("td", { children: [make("details", { children: folded })] }));
    return make("tr", { children: cells });
  }
}

async function show(place: HTMLElement): Promise<void> {
  const source = block<Source>("#episode-source");
  place.replaceChildren(make("p", { text: "Reading the register's file …" }));
  try {
    const read = await file(source.study, source.path);
    new List(place, source, rows(read), read.checked);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    place.replaceChildren(make("p", { class: "note", text: `The episodes cannot be listed here: ${why}. The command below reads them.` }));
  }
}

void show(element("#episodes", HTMLElement));
