/** The rows that a rule is decided on, read from the registers that lie beside the page. */

import { type Book, type Cell, described, partFor } from "./book";
import { episodesOf, place } from "./counted";
import type { Document, Endpoint, Evidence, Place, Row, Said } from "./evidence";
import { having, inWords } from "./measure";
import { catalogue, table } from "./registers";
import { exact } from "./value";

// What a complete evaluation says of its tasks, beside the columns that an endpoint names.
const OF_SETS = ["arm", "seed", "run_id", "trajectory", "step", "tasks", "episodes_per_task", "task_set"];
const OF_RUNS = ["run_id", "condition", "arm", "seed", "role", "scale_rewards", "status"];

/** Everything that a page's rule is decided on: the book's words, the registers' rows, and what the page says. */
export async function evidenceOf(said: Said, book: Book): Promise<Evidence> {
  const { study } = said;
  const document: Document = { ...said, ...partFor(book, said.rule) };
  for (const [name, spec] of Object.entries(document.intervals)) spec.recorded = said.intervals[name] ?? spec.recorded;
  const endpoints = Object.entries(document.endpoints);
  const wanted: Record<string, string[]> = { runs: [...OF_RUNS, ...book.cells.flatMap(({ fixed }) => Object.keys(fixed))] };
  for (const [, one] of endpoints) (wanted[one.register] ??= [...OF_SETS]).push(...columnsFor(one));
  const tables = await catalogue(study);
  const found = new Map<string, Row[]>();
  for (const [register, columns] of Object.entries(wanted)) {
    const there = tables[register]?.columns.filter((name) => columns.includes(name));
    if (there) found.set(register, await table(study, register, there));
  }
  for (const [name, endpoint] of endpoints) {
    const whole = found.get(endpoint.register);
    endpoint.lacks = whole ? "" : `the study has no register '${endpoint.register}'`;
    if (!whole) continue;
    if (endpoint.arms.length) endpoint.runs = decidingRuns(endpoint, book, found.get("runs") ?? []);
    if (!Object.keys(endpoint.attributes).length) continue;
    const made = await rowsOfSome(study, endpoint, whole);
    if (typeof made === "string") endpoint.lacks = made;
    else found.set(name, made);
  }
  return { document, rows: found };
}

/** The columns of its register that an endpoint reads. */
export function columnsFor({ where, outcome, expect }: Endpoint): string[] {
  return [...Object.keys(where), ...Object.values(outcome).filter(Boolean), ...Object.keys(expect)];
}

/** The one deciding run of every arm and seed that an endpoint reads, or why there is none. */
function decidingRuns(endpoint: Endpoint, { cells, roles }: Book, runs: readonly Row[]): Place[] {
  const { condition, scale_rewards } = endpoint;
  const deciding = runs
    .filter((run) => roles.includes(String(run["role"])))
    .map((run): Row => ({ ...run, scale_rewards: run["scale_rewards"] ?? "" }));
  const stands = (cell: Cell, run: Row) =>
    cell.condition === run["condition"] &&
    cell.scale_rewards === run["scale_rewards"] &&
    cell.arms.includes(String(run["arm"])) &&
    cell.seeds.includes(Number(run["seed"]));
  const isSame = (value: unknown, expected: unknown) =>
    typeof value === "number" || typeof value === "bigint" ? exact(value).equals(String(expected)) : value === expected;
  const one = (arm: string, seed: number): Place => {
    const here = { condition, scale_rewards, arm, seed };
    const cell = cells.find((cell) => stands(cell, here));
    const none = (missing: string[], not_run = false) => ({ arm, seed, missing, not_run });
    const [run, another] = having(deciding, here);
    if (another) throw new Error(`${described(endpoint, arm, seed)} has two deciding runs`);
    if (!run) {
      const begun = cell && deciding.some((other) => stands(cell, other));
      return none([`${described(endpoint, arm, seed)} was not run`], !begun);
    }
    const name = String(run["run_id"]);
    if (run["status"] !== "COMPLETE") return none([`${name} is not complete`]);
    const wrong = Object.entries(cell?.fixed ?? {})
      .filter(([column, expected]) => !isSame(run[column], expected))
      .map(([column, expected]) => `${name} has ${column} ${run[column]}, and ${expected} is registered`);
    return wrong.length ? none(wrong) : { arm, seed, run: name };
  };
  return endpoint.arms.flatMap((arm) => endpoint.seeds.map((seed) => one(arm, seed)));
}

/** The rows that the episodes of some tasks alone would give, or what is missing for them. */
async function rowsOfSome(study: string, endpoint: Endpoint, whole: readonly Row[]): Promise<Row[] | string> {
  const wanted = Object.entries(endpoint.attributes).sort();
  const pool = endpoint.where["pool"] ?? "";
  const tasks = new Set<number>();
  for (const { index, attributes } of having(await table(study, "task_pools", ["pool", "index", "attributes"]), { pool })) {
    const said = JSON.parse(String(attributes)) as Record<string, string>;
    if (wanted.every(([name, value]) => said[name] === value)) tasks.add(Number(index));
  }
  if (tasks.size !== endpoint.tasks)
    return `expected ${endpoint.tasks} tasks with ${inWords(Object.fromEntries(wanted))} in pool ${pool}, found ${tasks.size}`;
  const counted = await episodesOf(study, endpoint);
  return having(whole, endpoint.where).flatMap((row) => {
    const all = [...(counted.get(place(row["run_id"], row["step"])) ?? [])].filter(([task]) => tasks.has(task));
    if (!all.length) return [];
    const sum = (part: "episodes" | "successes") => all.reduce((total, [, of]) => total + of[part], 0);
    const per = Math.max(...all.map(([, of]) => of.episodes));
    const counts = { [endpoint.outcome.above]: sum("successes"), episodes: sum("episodes") };
    // Which tasks they are is compared with other runs: their positions say it.
    const met = { tasks: all.length, episodes_per_task: per };
    return [{ ...row, ...counts, ...met, task_set: all.map(([task]) => task).sort((a, b) => a - b).join() }];
  });
}
