/** Episodes counted by run, step and task: what an interval resamples, held against the register's counts. */

import type { Differences } from "./bootstrap";
import type { Endpoint, Rows } from "./evidence";
import { greatest } from "./fraction";
import { stepWeights, rowAt } from "./measure";
import { catalogue, columnsOf } from "./registers";
import { Missing } from "./value";

/** Task → its episodes, and what they add up to. */
export type Tasks = Map<number, { episodes: number; successes: number }>;

export interface Counted {
  differences: Differences;
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
  const count = "count" in endpoint.outcome ? endpoint.outcome.count : "";
  const column = COUNTED_BY_TASK[count] ?? count;
  const register = (await catalogue(study))["episodes"];
  if (!register) throw new Error(`this site does not carry the episodes of ${study}`);
  const runs = new Set(endpoint.runs.map(({ run }) => run));
  const wanted = Object.entries(endpoint.where).filter(([name]) => PLACE.includes(name));
  const names = ["run_id", "step", "task", column, ...wanted.map(([name]) => name)];
  if (register.columns.includes("excluded")) names.push("excluded");
  const found = new Map<string, Tasks>();
  for (const file of register.files) {
    if (file.run && !runs.has(file.run)) continue;
    const { rows, columns } = await columnsOf(study, file, names);
    for (let at = 0; at < rows; at += 1) {
      const value = (name: string) => columns[name]?.[at];
      if (!runs.has(String(value("run_id"))) || value("excluded") === true) continue;
      if (wanted.some(([name, is]) => value(name) !== is)) continue;
      const key = place(value("run_id"), value("step"));
      let tasks = found.get(key);
      if (!tasks) found.set(key, (tasks = new Map()));
      const of = tasks.get(Number(value("task"))) ?? { episodes: 0, successes: 0 };
      tasks.set(Number(value("task")), { episodes: of.episodes + 1, successes: of.successes + Number(value(column)) });
    }
  }
  return found;
}

/** The differences of an endpoint, by seed pair and task; throws where the episodes are not those of the rows. */
export function countEpisodes(id: string, endpoint: Endpoint, found: Map<string, Tasks>, registers: Rows): Counted {
  const { outcome } = endpoint;
  if (!("count" in outcome)) throw new Error("an interval of figures cannot be resampled");
  let [played, succeeded, places] = [0, 0, 0];
  for (const { run } of endpoint.runs)
    for (const step of endpoint.steps) {
      const here = `${run} at step ${step}`;
      const tasks = found.get(place(run, step));
      const row = rowAt(id, endpoint, registers, run ?? "", step);
      if (!tasks || row instanceof Missing) throw new Error(`there are no episodes of ${here}`);
      const all = [...tasks.values()];
      if (all.length !== endpoint.tasks || all.some((task) => task.episodes !== endpoint.schedules))
        throw new Error(`the episodes of ${here} are not ${endpoint.tasks} tasks × ${endpoint.schedules} schedules`);
      const total = all.reduce((sum, task) => sum + task.episodes, 0);
      const won = all.reduce((sum, task) => sum + task.successes, 0);
      if (String(won) !== String(row[outcome.count]) || String(total) !== String(row[outcome.of]))
        throw new Error(
          `the episodes of ${here} are ${won} of ${total}, and ${endpoint.register} ` +
            `says ${row[outcome.count]} of ${row[outcome.of]}`,
        );
      [played, succeeded, places] = [played + total, succeeded + won, places + 1];
    }
  return { differences: differences(endpoint, found), episodes: played, successes: succeeded, places };
}

function differences(endpoint: Endpoint, found: Map<string, Tasks>): Differences {
  const weights = stepWeights(endpoint);
  const scale = weights.reduce((all, { below }) => (all * below) / greatest(all, below), 1n);
  const whole = weights.map(({ above, below }) => Number((above * scale) / below));
  const first = found.get(place(endpoint.runs[0]?.run, endpoint.steps[0]));
  const tasks = [...(first?.keys() ?? [])].sort((a, b) => a - b);
  const numerators = endpoint.seeds.map(() => new Float64Array(tasks.length));
  for (const { arm, seed, run } of endpoint.runs) {
    const row = numerators[endpoint.seeds.indexOf(seed)] as Float64Array;
    const sign = endpoint.arms.indexOf(arm) === 0 ? 1 : -1;
    endpoint.steps.forEach((step, i) => {
      const counted = found.get(place(run, step));
      tasks.forEach((task, at) => {
        const of = counted?.get(task);
        if (!of) throw new Error(`${run} at step ${step} did not meet task ${task}, which others met`);
        row[at]! += sign * (whole[i] as number) * of.successes;
      });
    });
  }
  return { numerators, denominator: Number(scale) * endpoint.schedules };
}

/** A run at a step, as a key. */
export function place(run: unknown, step: unknown): string {
  return `${step} ${run}`;
}
