/**
 * On a run's page: rows of its registers where a reader opens them, its episodes as a list to filter, whose filters
 * the address keeps, and some of them call by call.
 */

import { canHash } from "./bytes";
import { type Cell, block, button, count, load, make, messageOf, note, rowOf, spelt as words, tableOf } from "./page";
import { Player } from "./player";
import { type RegisterFile, type Row, catalogue, leftBy, rowsOf, shown } from "./registers";

interface Source {
  study: string;
  run: string;
  /** By table the run's own file; of a table with one file for all runs the manifest says which. */
  files: Record<string, RegisterFile>;
}

/** Columns that say where an episode stands; the first ones are filters, and `replay` takes all but the pool. */
const PLACE = ["phase", "pool", "regime", "step", "task", "schedule"] as const;
const FILTERS = ["phase", "pool", "regime", "step", "outcome", "task"];
const FAULT = /^(transient|rate_limit|outage|stale_read|truncation|timeout_after_commit|field_dropout)$/;
const HEADS = ["set", "step", "task", "schedule", "outcome", "calls", "faults that landed", "play it again"];
const AT_ONCE = 50;

const text = (value: unknown): string => (value === null || value === undefined ? "" : String(value));

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

const outcome = (row: Row): string => (row["true_success"] === true ? "succeeded" : "failed");

/** What a filter compares with its word. */
const said = (row: Row, name: string): string => (name === "outcome" ? outcome(row) : text(row[name]));

/** Names of filters and their words, as the address has them. */
function fromAddress(): Map<string, string> {
  const given = new URLSearchParams(location.hash.slice(1));
  return new Map(FILTERS.flatMap((name) => (given.get(name) ? [[name, given.get(name) as string]] : [])));
}

/** A table that shows rows, the first ones first and more at a click. */
function paged(name: string, head: readonly string[], line: (row: Row) => HTMLElement) {
  const body = make("tbody");
  let rows: Row[] = [];
  const add = () => {
    const at = body.children.length;
    body.append(...rows.slice(at, at + AT_ONCE).map(line));
    more.hidden = at + AT_ONCE >= rows.length;
  };
  const more = button(`Show ${AT_ONCE} more`, add);
  const show = (found: Row[]) => {
    rows = found;
    body.replaceChildren();
    add();
  };
  return { parts: [tableOf(head, body, name, "rows"), more], show };
}

/** The run's episodes as a list to filter, whose filters the address keeps. */
function list(place: HTMLElement, source: Source, all: Row[]): void {
  const status = make("p", { class: "status", role: "status" });
  const { parts, show } = paged("Episodes", HEADS, (row) => lineOf(row, source));
  const fields = FILTERS.map((name) => {
    if (name === "task") return make("input", { name, type: "number", min: "0" });
    const values = [...new Set(all.map((row) => said(row, name)))].sort();
    if (name === "step") values.sort((a, b) => Number(a) - Number(b));
    const offered = (name === "outcome" ? ["succeeded", "failed"] : values).map((value) => new Option(words(value), value));
    return make("select", { name, children: [new Option("all", ""), ...offered] });
  });
  const draw = () => {
    const filters = fields.flatMap(({ name, value }) => (value ? [[name, value] as const] : []));
    const found = all.filter((row) => filters.every(([name, value]) => said(row, name) === value));
    const which = filters.length ? `: ${filters.map((one) => one.join(" ")).join(", ")}` : " in all";
    const trust = canHash() ? "" : " This browser could not hold the file against the manifest.";
    const successes = `${found.filter((row) => row["true_success"] === true).length} succeeded`;
    status.textContent = `${count(found.length, "episode")} of ${source.run.slice(0, 120)}${which}; ${successes}.${trust}`;
    show(found);
    return filters;
  };
  const follow = () => {
    const filters = fromAddress();
    for (const field of fields) field.value = filters.get(field.name) ?? ""; // a word that no episode has is not a filter
    if (draw().length) (place.closest("section") ?? place).scrollIntoView();
  };
  const children = fields.map((field) => make("label", { text: `${field.name} `, children: [field] }));
  const form = make("form", { class: "filters", children });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    const address = new URLSearchParams(draw().map((one) => [...one]));
    history.replaceState(null, "", address.size ? `#${address}` : location.pathname + location.search);
  });
  place.replaceChildren(form, status, ...parts);
  addEventListener("hashchange", follow);
  follow();
}

function lineOf(row: Row, source: Source): HTMLElement {
  const set = [row["phase"], row["pool"], row["regime"]].map((value) => words(text(value))).join(" ");
  const seed = text(row["schedule_seed"]);
  const schedule = make("td", { text: text(row["schedule"]), title: seed && `schedule seed ${seed}` });
  const folded = [make("summary", { text: "command" }), make("code", { text: command(source, row) })];
  const [calls, met] = [text(row["calls"]) || "–", faults(row) || "–"];
  const graded = `${outcome(row)}${row["true_success"] && row["observed_reward"] === false ? ", graded a failure" : ""}`;
  const replay = make("details", { children: folded });
  return rowOf([set, text(row["step"]), text(row["task"]), schedule, graded, calls, met, replay]);
}

/** What a row says, and what it does not; the members of a JSON object stand for themselves. */
function described(row: Row): HTMLElement[] {
  const recorded = Object.entries(row).filter(([, value]) => value !== null);
  const parts = recorded.flatMap(([name, value]): [string, unknown][] => {
    const isObject = typeof value === "string" && value.startsWith("{");
    return isObject ? Object.entries(JSON.parse(value) as object) : [[name, shown(value)]];
  });
  const list = parts.flatMap(([name, value]) => [
    make("dt", { text: words(name) }),
    make("dd", { text: typeof value === "object" ? JSON.stringify(value) : text(value) }),
  ]);
  const absent = Object.keys(row).filter((name) => row[name] === null).map(words);
  return [make("dl", { children: list }), ...(absent.length ? [note(`Not recorded: ${absent.join(", ")}.`)] : [])];
}

/** A list of rows as a table; a row alone as what it says. */
function listed(name: string, all: Row[]): HTMLElement[] {
  if (all.length === 1) return described(all[0]!);
  const columns = Object.keys(all[0] ?? {}).filter((column) => all.some((row) => row[column] !== null));
  const { parts, show } = paged(name, columns.map(words), (row) => rowOf(columns.map((column) => shown(row[column] ?? null))));
  show(all);
  return parts;
}

/** A played episode, as the player steps through its calls. */
function side(episode: Played, source: Source): HTMLElement {
  const code = (text: string, kind = "") => make("code", { class: kind, text });
  const line = (kind: string, ...children: Cell[]) => make("p", { class: kind, children });
  const end = episode.true_success ? "succeeded" : "failed";
  const title = `Task ${episode.task}, schedule ${episode.schedule}: ${end}`;
  const calls = episode.calls.map((call) => {
    const blocked = call.blocked_by ? `blocked by the ${words(call.blocked_by)} before` : "no fault";
    const free = call.charged ? "" : ", free of charge";
    const event = `${call.key ? `${call.key}: ` : ""}${call.fault ? words(call.fault) : blocked}${free}`;
    const asked = line("", code(call.tool, "tool"), ` ${call.arguments}`);
    const children = [asked, line("event", event), line("reply", code(call.answer))];
    return make("li", { class: call.fault || call.blocked_by ? "call faulty" : "call", children });
  });
  const differences = episode.differences.length ? ` ${episode.differences.length} differences from the expected end state.` : "";
  const spent = `${words(end)}; ${words(episode.ended)} after ${episode.calls_charged} of ${episode.budget} calls.${differences}`;
  const replay = make("pre", { class: "command", children: [code(command(source, episode as unknown as Row))] });
  const ending = make("div", { class: "end", children: [line("", spent), replay] });
  const side = make("section", { class: "side", children: [make("ol", { class: "calls", children: calls }), ending] });
  side.dataset["arm"] = "the agent";
  const where = `${words(episode.phase)} ${episode.pool} under ${words(episode.regime)}, step ${episode.step}`;
  const small = make("small", { text: `${where}; schedule seed ${episode.schedule_seed}` });
  const prompt = make("blockquote", { class: "prompt", text: episode.prompt });
  const pair = make("details", { class: "pair", children: [make("summary", { text: title }), prompt, line("", small), side] });
  pair.dataset["title"] = title;
  return pair;
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
  const place = make("div", { children: [make("p", { text: "Reading the register's file …" })] });
  const once = () => {
    if (!details.open || place.isConnected) return;
    details.append(place);
    const failed = (error: unknown) => note(`This cannot be shown here: ${messageOf(error)}.`);
    fill(place).catch((error: unknown) => place.replaceChildren(failed(error)));
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
    const all = (await rowsOf(source.study, entry)).filter((row) => !("run_id" in row) || row["run_id"] === source.run);
    if (name === "episodes") list(place, source, all);
    else place.replaceChildren(...listed(words(name), all));
  });
  if (name !== "episodes") continue;
  const asked = () => {
    if (fromAddress().size) details.open = true;
  };
  addEventListener("hashchange", asked);
  asked();
}
for (const details of document.querySelectorAll<HTMLDetailsElement>("details[data-played]")) {
  whenOpened(details, async (place) => {
    await load(`data/${source.study}/played/${details.dataset["played"]}.js`);
    const played = await leftBy<Played[]>(`${source.study}/played/${source.run}`);
    place.replaceChildren(make("div", { children: played.map((episode) => side(episode, source)) }));
    new Player(place);
  });
}
