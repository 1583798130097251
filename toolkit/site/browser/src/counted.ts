/** Episodes counted by run, step and task: what an interval resamples, held against the register's counts. */

import type { Endpoint, Rows } from "./evidence";
import { rowAt, rowsRead, stepWeights } from "./measure";
import { catalogue, rowsOf } from "./registers";
import { Fraction, Missing } from "./value";

/** Task → its episodes, and what they add up to. */
export type Tasks = Map<number, { episodes: number; successes: number }>;

export interface Counted {
  /** Differences of seed pairs (a row each) and tasks as whole numbers over one denominator, so that every sum is exact. */
  numerators: Float64Array[];
  denominator: number;
  /** Episodes read, and successes among them. */
  episodes: number;
  successes: number;
  /** The places (a run at a step) whose sums were held against the register. */
  places: number;
}

// What a count of `evaluations` counts, as a column of `episodes`; others have the same name in both.
const COUNTED_BY_TASK: Record<string, string> = { successes: "true_success", observed_successes: "observed_reward" };
const PLACE = ["phase", "pool", "regime"];

/** Count the episodes that an endpoint is a mean of, by place and task; those that are left out are not counted. */
export async function episodesOf(study: string, endpoint: Endpoint): Promise<Map<string, Tasks>> {
  const { above } = endpoint.outcome;
  const column = COUNTED_BY_TASK[above] ?? above;
  const register = (await catalogue(study))["episodes"];
  if (!register) throw new Error(`this site does not carry the episodes of ${study}`);
  const runs = new Set(endpoint.runs.map(({ run }) => run));
  const wanted = Object.entries(endpoint.where).filter(([name]) => PLACE.includes(name));
  const names = ["run_id", "step", "task", column, ...wanted.map(([name]) => name)];
  if (register.columns.includes("excluded")) names.push("excluded");
  const found = new Map<string, Tasks>();
  for (const file of register.files) {
    if (file.run && !runs.has(file.run)) continue;
    for (const row of await rowsOf(study, file, names)) {
      if (!runs.has(String(row["run_id"])) || row["excluded"] === true) continue;
      if (wanted.some(([name, is]) => row[name] !== is)) continue;
      const [key, task] = [place(row["run_id"], row["step"]), Number(row["task"])];
      const tasks: Tasks = found.get(key) ?? new Map();
      const { episodes, successes } = tasks.get(task) ?? { episodes: 0, successes: 0 };
      found.set(key, tasks.set(task, { episodes: episodes + 1, successes: successes + Number(row[column]) }));
    }
  }
  return found;
}

/** The differences of an endpoint, by seed pair and task; throws where the episodes are not those of the rows. */
export function countEpisodes(id: string, endpoint: Endpoint, found: Map<string, Tasks>, registers: Rows): Counted {
  const { arms, seeds, steps, runs, schedules } = endpoint;
  const { above, below } = endpoint.outcome;
  const read = rowsRead(id, endpoint, registers);
  const weights = stepWeights(endpoint);
  const scale = weights.reduce((all, { d }) => all.lcm(d), new Fraction(1));
  const ordered = [...(found.get(place(runs[0]?.run, steps[0]))?.keys() ?? [])].sort((a, b) => a - b);
  const numerators = seeds.map(() => new Float64Array(ordered.length));
  let [episodes, successes] = [0, 0];
  for (const { arm, seed, run } of runs) {
    const sums = numerators[seeds.indexOf(seed)] as Float64Array;
    const sign = arms.indexOf(arm) === 0 ? 1 : -1;
    for (const [i, step] of steps.entries()) {
      const here = `${run} at step ${step}`;
      const tasks = found.get(place(run, step));
      const row = rowAt(endpoint, read, { run_id: run, step });
      if (!tasks || row instanceof Missing) throw new Error(`there are no episodes of ${here}`);
      const all = [...tasks.values()];
      if (all.length !== endpoint.tasks || all.some((task) => task.episodes !== schedules))
        throw new Error(`the episodes of ${here} are not ${endpoint.tasks} tasks × ${schedules} schedules`);
      const [total, won] = [all.length * schedules, all.reduce((sum, task) => sum + task.successes, 0)];
      const [counted, said] = [`${won} of ${total}`, `${row[above]} of ${row[below]}`];
      if (counted !== said) throw new Error(`the episodes of ${here} are ${counted}, and ${endpoint.register} says ${said}`);
      [episodes, successes] = [episodes + total, successes + won];
      const whole = sign * scale.mul(weights[i] as Fraction).valueOf();
      ordered.forEach((task, at) => {
        const of = tasks.get(task);
        if (!of) throw new Error(`${here} did not meet task ${task}, which others met`);
        sums[at]! += whole * of.successes;
      });
    }
  }
  const denominator = scale.valueOf() * schedules;
  return { numerators, denominator, episodes, successes, places: runs.length * steps.length };
}

/** A run at a step, as a key. */
export function place(run: unknown, step: unknown): string {
  return `${step} ${run}`;
}
