/** The rows that a rule is decided on, read from the registers that lie beside the page. */

import { type Book, type Cell, described, partFor } from "./book";
import { episodesOf, place } from "./counted";
import type { Document, Endpoint, Evidence, Place, Row, Said } from "./evidence";
import { Fraction } from "./fraction";
import { having, inWords } from "./measure";
import { catalogue, rows, table } from "./registers";

// What a complete evaluation says of its tasks, beside the columns that an endpoint names.
const OF_SETS = ["arm", "seed", "run_id", "trajectory", "step", "tasks", "episodes_per_task", "task_set"];
const OF_RUNS = ["run_id", "condition", "arm", "seed", "role", "scale_rewards", "status"];

/** Everything that a page's rule is decided on: the book's words, the registers' rows, and what the page says. */
export async function evidenceOf(said: Said, book: Book): Promise<Evidence> {
  const { study, rule, tests, recorded, resampled } = said;
  const part = partFor(book, rule);
  const document: Document = { study, rule, tests, recorded, resampled, ...part };
  for (const [name, spec] of Object.entries(document.intervals)) spec.recorded = said.intervals[name] ?? spec.recorded;
  const found = new Map<string, Row[]>();
  const endpoints = Object.entries(document.endpoints);
  const tables = await catalogue(study);
  const read = async (register: string, columns: readonly string[]) => {
    const known = tables[register];
    if (!known) return;
    const there = known.columns.filter((name) => columns.includes(name));
    found.set(register, rows(await table(study, register, there)));
  };
  const registers = [...new Set(endpoints.map(([, { register }]) => register))];
  await Promise.all([
    read("runs", [...OF_RUNS, ...book.cells.flatMap(({ fixed }) => Object.keys(fixed))]),
    ...registers.map((register) =>
      read(register, endpoints.filter(([, e]) => e.register === register).reduce((all, [, e]) => [...all, ...columnsFor(e)], OF_SETS)),
    ),
  ]);
  for (const [name, endpoint] of endpoints) {
    endpoint.has_register = found.has(endpoint.register);
    if (endpoint.arms.length && endpoint.has_register) endpoint.runs = decidingRuns(endpoint, book, found.get("runs") ?? []);
    if (Object.keys(endpoint.attributes).length && endpoint.has_register) {
      const made = await rowsOfSome(study, endpoint, found.get(endpoint.register) ?? []);
      if (typeof made === "string") Object.assign(endpoint, { has_register: false, lacks: made });
      else found.set(name, made);
    }
  }
  return { document, rows: found };
}

/** The columns of its register that an endpoint reads. */
export function columnsFor({ where, outcome, expect }: Endpoint): string[] {
  const named = "count" in outcome ? [outcome.count, outcome.of] : [outcome.figure, outcome.over ?? ""];
  return [...Object.keys(where), ...named.filter(Boolean), ...Object.keys(expect)];
}

/** The rows that an endpoint reads. */
export function rowsRead(name: string, endpoint: Endpoint, registers: Evidence["rows"]): readonly Row[] {
  const all = having(registers.get(name) ?? registers.get(endpoint.register) ?? [], endpoint.where);
  const runs = new Set(endpoint.runs.map(({ run }) => run));
  const isRead = (row: Row) =>
    endpoint.checkpoints.length
      ? endpoint.checkpoints.some(({ trajectory, step }) => row["trajectory"] === trajectory && Number(row["step"]) === step)
      : (!endpoint.arms.length || runs.has(row["run_id"] as string)) &&
        (!endpoint.steps.length || endpoint.steps.includes(Number(row["step"])));
  return all.filter(isRead);
}

/** The one deciding run of every arm and seed that an endpoint reads, or why there is none. */
function decidingRuns(endpoint: Endpoint, { cells, roles }: Book, runs: readonly Row[]): Place[] {
  const scaling = (row: Row) => row["scale_rewards"] ?? "";
  const deciding = runs.filter((run) => roles.includes(String(run["role"])));
  const stands = (cell: Cell, run: Row) =>
    cell.condition === run["condition"] &&
    cell.scale_rewards === scaling(run) &&
    cell.arms.includes(String(run["arm"])) &&
    cell.seeds.includes(Number(run["seed"]));
  const { condition, scale_rewards } = endpoint;
  const one = (arm: string, seed: number): Place => {
    const here = { condition, scale_rewards, arm, seed };
    const cell = cells.find((cell) => stands(cell, here));
    const matching = having(deciding, { condition, arm, seed }).filter((run) => scaling(run) === scale_rewards);
    const [run] = matching;
    if (matching.length > 1) throw new Error(`${described(endpoint, arm, seed)} has two deciding runs`);
    if (!run) {
      const begun = cell && deciding.some((other) => stands(cell, other));
      return { arm, seed, missing: [`${described(endpoint, arm, seed)} was not run`], not_run: !begun };
    }
    const name = String(run["run_id"]);
    if (run["status"] !== "COMPLETE") return { arm, seed, missing: [`${name} is not complete`], not_run: false };
    const wrong = Object.entries(cell?.fixed ?? {})
      .filter(([column, expected]) => !isFixed(run[column], expected))
      .map(([column, expected]) => `${name} has ${column} ${run[column]}, and ${expected} is registered`);
    return wrong.length ? { arm, seed, missing: wrong, not_run: false } : { arm, seed, run: name };
  };
  return endpoint.arms.flatMap((arm) => endpoint.seeds.map((seed) => one(arm, seed)));
}

function isFixed(value: unknown, expected: unknown): boolean {
  if (typeof value !== "number" && typeof value !== "bigint") return value === expected;
  return Fraction.stored(value).compare(Fraction.read(String(expected))) === 0;
}

/** The rows that the episodes of some tasks alone would give, or what is missing for them. */
async function rowsOfSome(study: string, endpoint: Endpoint, whole: readonly Row[]): Promise<Row[] | string> {
  const wanted = Object.entries(endpoint.attributes).sort();
  const pool = endpoint.where["pool"] ?? "";
  const listed = having(rows(await table(study, "task_pools", ["pool", "index", "attributes"])), { pool });
  const tasks = new Set<number>();
  for (const { index, attributes } of listed) {
    const said = JSON.parse(String(attributes)) as Record<string, string>;
    if (wanted.every(([name, value]) => said[name] === value)) tasks.add(Number(index));
  }
  if (tasks.size !== endpoint.tasks)
    return `expected ${endpoint.tasks} tasks with ${inWords(Object.fromEntries(wanted))} in pool ${pool}, found ${tasks.size}`;
  const counted = await episodesOf(study, endpoint);
  const { outcome } = endpoint;
  if (!("count" in outcome)) throw new Error("episodes of some tasks are counted");
  const made: Row[] = [];
  for (const row of having(whole, endpoint.where)) {
    const all = [...(counted.get(place(row["run_id"], row["step"])) ?? [])].filter(([task]) => tasks.has(task));
    if (!all.length) continue;
    const sum = (part: "episodes" | "successes") => all.reduce((total, [, of]) => total + of[part], 0);
    const per = Math.max(...all.map(([, of]) => of.episodes));
    const counts = { [outcome.count]: sum("successes"), episodes: sum("episodes"), tasks: all.length, episodes_per_task: per };
    // Which tasks they are is compared with other runs: their positions say it.
    made.push({ ...row, ...counts, task_set: all.map(([task]) => task).sort((a, b) => a - b).join() });
  }
  return made;
}
