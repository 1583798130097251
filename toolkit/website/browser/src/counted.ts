/** What an interval resamples: episodes counted by run, step and task, and held against the register's counts. */

import type { Differences } from "./bootstrap";
import type { Endpoint, Row } from "./evidence";
import { stepWeights, rowAt } from "./measure";
import { Missing } from "./value";

type Tasks = Map<number, { episodes: number; successes: number }>;

export interface Counted {
  differences: Differences;
  /** Episodes read, and successes among them. */
  episodes: number;
  successes: number;
  /** The places (a run at a step) whose sums were held against the register. */
  places: number;
}

/** The differences of an endpoint, by seed pair and task; throws where the episodes are not those of the rows. */
export function countEpisodes(
  endpoint: Endpoint,
  episodes: readonly Row[],
  registers: ReadonlyMap<string, readonly Row[]>,
): Counted {
  const { outcome } = endpoint;
  if (!("count" in outcome)) throw new Error("an interval of figures cannot be resampled");
  const found = byPlace(episodes);
  let [played, succeeded, places] = [0, 0, 0];
  for (const { run } of endpoint.runs)
    for (const step of endpoint.steps) {
      const here = `${run} at step ${step}`;
      const tasks = found.get(place(run, step));
      const row = rowAt(endpoint, registers, run ?? "", step);
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

function byPlace(episodes: readonly Row[]): Map<string, Tasks> {
  const found = new Map<string, Tasks>();
  for (const row of episodes) {
    const key = place(row["run_id"], row["step"]);
    let tasks = found.get(key);
    if (!tasks) found.set(key, (tasks = new Map()));
    if (tasks.has(Number(row["task"]))) throw new Error(`a task is there twice at ${key}`);
    tasks.set(Number(row["task"]), { episodes: Number(row["episodes"]), successes: Number(row["successes"]) });
  }
  return found;
}

function place(run: unknown, step: unknown): string {
  return `${step} ${run}`;
}

function greatest(a: bigint, b: bigint): bigint {
  while (b !== 0n) [a, b] = [b, a % b];
  return a;
}
