/**
 * On a run's page: rows of its registers where a reader opens them, its episodes as a list to filter, whose filters
 * the address keeps, and some of them call by call.
 */

import { block, bodyOf, button, count, load, make, messageOf, rowOf, spelt as words, tableOf } from "./page";
import { Player } from "./player";
import { type RegisterFile, type Row, catalogue, columnsOf, leftBy, rows, shown } from "./registers";

interface Source {
  study: string;
  run: string;
  /** By table the run's own file; of a table with one file for all runs the manifest says which. */
  files: Record<string, RegisterFile>;
}

/** Columns that say where an episode stands; the first ones are filters, and `replay` takes all but the pool. */
const PLACE = ["phase", "pool", "regime", "step", "task", "schedule"] as const;
const WORDS = ["phase", "pool", "regime", "step"] as const;
const FAULT = /^(transient|rate_limit|outage|stale_read|truncation|timeout_after_commit|field_dropout)$/;
const HEADS = ["set", "step", "task", "schedule", "outcome", "calls", "faults that landed", "play it again"];
const AT_ONCE = 50;

type Filters = Map<string, string>;

const text = (value: unknown): string => (value === null || value === undefined ? "" : String(value));

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
  private readonly more = button(`Show ${AT_ONCE} more`, () => {
    this.shown += AT_ONCE;
    this.draw();
  });

  constructor(
    private readonly place: HTMLElement,
    private readonly source: Source,
    private readonly all: Row[],
    private readonly checked: boolean,
  ) {
    this.status.setAttribute("role", "status");
    place.replaceChildren(this.form(), this.status, tableOf(HEADS, this.body, "Episodes", "rows"), this.more);
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

  private draw(): void {
    const found = this.all.filter((row) => matches(row, this.filters));
    const won = found.filter((row) => row["true_success"] === true).length;
    const set = [...this.filters].filter(([, value]) => value).map(([name, value]) => `${name} ${value}`);
    const which = set.length ? `: ${set.join(", ")}` : " in all";
    const trust = this.checked ? "" : " This browser could not hold the file against the manifest.";
    this.status.textContent = `${count(found.length, "episode")} of ${this.source.run.slice(0, 120)}${which}; ${won} succeeded.${trust}`;
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
    return rowOf([...cells, make("details", { children: folded })]);
  }
}

/** What a row says, and what it does not; the members of a JSON object stand for themselves. */
function described(row: Row): HTMLElement[] {
  const list = make("dl");
  const say = (name: string, value: unknown): void => {
    list.append(make("dt", { text: words(name) }), make("dd", { text: typeof value === "object" ? JSON.stringify(value) : text(value) }));
  };
  for (const [name, value] of Object.entries(row)) {
    if (value === null) continue;
    if (typeof value === "string" && value.startsWith("{")) Object.entries(JSON.parse(value) as object).forEach(([part, held]) => say(part, held));
    else say(name, shown(value));
  }
  const absent = Object.keys(row).filter((name) => row[name] === null).map(words);
  return absent.length ? [list, make("p", { class: "note", text: `Not recorded: ${absent.join(", ")}.` })] : [list];
}

/** A list of rows as a table, the first ones first; a row alone as what it says. */
function listed(name: string, all: Row[]): HTMLElement[] {
  if (all.length === 1) return described(all[0]!);
  const columns = Object.keys(all[0] ?? {}).filter((column) => all.some((row) => row[column] !== null));
  const body = bodyOf([]);
  const draw = (): void => {
    const next = all.slice(body.children.length, body.children.length + AT_ONCE);
    body.append(...next.map((row) => rowOf(columns.map((column) => shown(row[column] ?? null)))));
    more.hidden = body.children.length >= all.length;
  };
  const more = button(`Show ${AT_ONCE} more`, draw);
  draw();
  return [tableOf(columns.map(words), body, name, "rows"), more];
}

/** The calls of played episodes, as the player steps through them. */
function sides(played: Played[], source: Source): HTMLElement {
  return make("div", {
    children: played.map((episode) => {
      const end = episode.true_success ? "succeeded" : "failed";
      const title = `Task ${episode.task}, schedule ${episode.schedule}: ${end}`;
      const calls = episode.calls.map((call) => {
        const event = call.fault ? words(call.fault) : call.blocked_by ? `blocked by the ${words(call.blocked_by)} before` : "no fault";
        const free = call.charged ? "" : ", free of charge";
        const said = make("p", { children: [make("code", { class: "tool", text: call.tool }), ` ${call.arguments}`] });
        const children = [
          said,
          make("p", { class: "event", text: `${call.key ? `${call.key}: ` : ""}${event}${free}` }),
          make("p", { class: "reply", children: [make("code", { text: call.answer })] }),
        ];
        return make("li", { class: call.fault || call.blocked_by ? "call faulty" : "call", children });
      });
      const differences = episode.differences.length ? ` ${episode.differences.length} differences from the expected end state.` : "";
      const side = make("section", {
        class: "side",
        children: [
          make("ol", { class: "calls", children: calls }),
          make("div", {
            class: "end",
            children: [
              make("p", { text: `${words(end)}; ${words(episode.ended)} after ${episode.calls_charged} of ${episode.budget} calls.${differences}` }),
              make("pre", { class: "command", children: [make("code", { text: command(source, episode as unknown as Row) })] }),
            ],
          }),
        ],
      });
      side.dataset["arm"] = "the agent";
      const where = `${words(episode.phase)} ${episode.pool} under ${words(episode.regime)}, step ${episode.step}; schedule seed ${episode.schedule_seed}`;
      const children = [
        make("summary", { text: title }),
        make("blockquote", { class: "prompt", text: episode.prompt }),
        make("p", { children: [make("small", { text: where })] }),
        side,
      ];
      const pair = make("details", { class: "pair", children });
      pair.dataset["title"] = title;
      return pair;
    }),
  });
}

interface Played {
  phase: string;
  pool: string;
  regime: string;
  step: number;
  task: number;
  schedule: number;
  schedule_seed: string;
  prompt: string;
  true_success: boolean;
  ended: string;
  calls_charged: number;
  budget: number;
  differences: unknown[];
  calls: { tool: string; arguments: string; key: string; fault: string; blocked_by: string; charged: boolean; answer: string }[];
}

/** Once somebody opens a part of the page, fill it. */
function whenOpened(details: HTMLDetailsElement, fill: (place: HTMLElement) => Promise<void>): void {
  const place = make("div");
  const once = (): void => {
    if (!details.open || place.isConnected) return;
    details.append(place);
    place.replaceChildren(make("p", { text: "Reading the register's file …" }));
    fill(place).catch((error: unknown) => {
      place.replaceChildren(make("p", { class: "note", text: `This cannot be shown here: ${messageOf(error)}.` }));
    });
  };
  details.addEventListener("toggle", once);
  once();
}

const source = block<Source>("#registers");
for (const details of document.querySelectorAll<HTMLDetailsElement>("details[data-rows]")) {
  const name = details.dataset["rows"] ?? "";
  whenOpened(details, async (place) => {
    const entry = source.files[name] ?? (await catalogue(source.study))[name]?.files[0];
    if (!entry) throw new Error(`the site does not carry the table ${name}`);
    const read = await columnsOf(source.study, entry);
    const all = rows(read).filter((row) => !("run_id" in row) || row["run_id"] === source.run);
    if (name === "episodes") new List(place, source, all, read.checked);
    else place.replaceChildren(...listed(words(name), all));
  });
  const asked = (): void => {
    if ([...fromAddress([...WORDS, "outcome", "task"]).values()].some(Boolean)) details.open = true;
  };
  if (name !== "episodes") continue;
  addEventListener("hashchange", asked);
  asked();
}
for (const details of document.querySelectorAll<HTMLDetailsElement>("details[data-played]")) {
  whenOpened(details, async (place) => {
    const key = `${source.study}/played/${source.run}`;
    await load(`data/${source.study}/played/${details.dataset["played"]}.js`);
    place.replaceChildren(sides(await leftBy<Played[]>(key), source));
    new Player(place);
  });
}
