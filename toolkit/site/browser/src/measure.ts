/** From the rows of a register to the value of an endpoint, exactly. */

import { described } from "./book";
import type { Endpoint, Row, Rows } from "./evidence";
import { Fraction, Missing, type Scalar, Series, absent, exact, mean, present, sum, together } from "./value";

/** An endpoint's value; throws where rows contradict each other, or a value lies outside its declared range. */
export function measure(id: string, endpoint: Endpoint, registers: Rows): Scalar | Series {
  const value = measured(id, endpoint, registers);
  for (const one of value instanceof Series ? value.values : [value])
    if (one instanceof Fraction && (one.lt(endpoint.low) || one.gt(endpoint.high)))
      throw new Error(`${id} has a value outside its declared range: ${one.valueOf()}`);
  return value;
}

/** The weights of an endpoint's steps in its value; they sum to one, and of a gain to zero. */
export function stepWeights({ steps, over_steps }: Endpoint): Fraction[] {
  if (!["auc", "auc_gain"].includes(over_steps)) return steps.map(() => new Fraction(1, steps.length));
  // The trapezoidal mean: half of each neighbouring gap, over the span.
  const gaps = steps.slice(1).map((after, i) => after - (steps[i] as number));
  const span = 2 * ((steps.at(-1) as number) - (steps[0] as number));
  const first = over_steps === "auc_gain" ? span : 0;
  return steps.map((_, i) => new Fraction((gaps[i - 1] ?? 0) + (gaps[i] ?? 0) - (i === 0 ? first : 0), span));
}

function measured(id: string, endpoint: Endpoint, registers: Rows): Scalar | Series {
  const { by, arms, seeds, steps, checkpoints } = endpoint;
  const lacking = endpoint.lacks ? new Missing([endpoint.lacks]) : null;
  const read = rowsRead(id, endpoint, registers);
  const single: Row = steps.length ? { step: steps[0] } : {};
  const at = (place: Row): Scalar => lacking ?? quotient(id, [parts(endpoint, read, place)]);
  if (by === "row") return at(single);
  if (by === "checkpoint") return new Series(by, checkpoints.map((one) => [`${one.trajectory}@${one.step}`, at({ ...one })]));
  const apart = lacking ?? otherTasks(endpoint, read);
  const runs = endpoint.runs.map(({ run, missing = [], not_run }) => (run ? (apart ?? run) : new Missing(missing, not_run)));
  if (by === "pooled") {
    const of = (run: string | Missing) => (run instanceof Missing ? run : parts(endpoint, read, { run_id: run, ...single }));
    return lacking ?? quotient(id, runs.map(of));
  }
  const levels = runs.map((run): Scalar => {
    if (run instanceof Missing) return run;
    if (!endpoint.over_steps) return at({ run_id: run, ...single });
    const points = present(steps.map((step) => at({ run_id: run, step })));
    return points instanceof Missing ? points : overSteps(endpoint, run, points);
  });
  if (by === "seed") return new Series(by, seeds.map((seed) => [`${seed}`, lacking ?? contrast(endpoint, levels, seed)]));
  const names = arms.flatMap((arm) => seeds.map((seed) => described(endpoint, arm, seed)));
  return new Series(by, names.map((name, i) => [endpoint.runs[i]?.run ?? name, lacking ?? (levels[i] as Scalar)]));
}

/** The rows that an endpoint reads: of its register, or of those made for it. */
export function rowsRead(id: string, endpoint: Endpoint, registers: Rows): readonly Row[] {
  const { arms, steps, checkpoints, where } = endpoint;
  const runs = new Set<unknown>(endpoint.runs.map(({ run }) => run));
  const isRead = (row: Row) =>
    checkpoints.length
      ? checkpoints.some(({ trajectory, step }) => row["trajectory"] === trajectory && Number(row["step"]) === step)
      : (!arms.length || runs.has(row["run_id"])) && (!steps.length || steps.includes(Number(row["step"])));
  return having(registers.get(id) ?? registers.get(endpoint.register) ?? [], where).filter(isRead);
}

/** The rows that have some values; as texts, since wide whole numbers come as BigInt, and mean the same. */
export function having(rows: readonly Row[], wanted: Row): readonly Row[] {
  const asked = Object.entries(wanted).map(([name, value]) => [name, String(value)] as const);
  return rows.filter((row) => asked.every(([name, value]) => String(row[name]) === value));
}

/** What rows are asked to have, as an error says it. */
export function inWords(wanted: Row): string {
  return Object.entries(wanted).map(([name, value]) => `${name}=${value}`).join(", ");
}

/** The first arm minus the second, or the only arm, of one seed. */
function contrast(endpoint: Endpoint, levels: readonly Scalar[], seed: number): Scalar {
  const values = present(levels.filter((_, i) => endpoint.runs[i]?.seed === seed));
  if (values instanceof Missing) return values;
  const [first, second] = values as [Fraction, Fraction?];
  return second ? first.sub(second) : first;
}

/** One run's summary over the registered steps. */
function overSteps(endpoint: Endpoint, run: string, points: readonly Fraction[]): Scalar {
  const { steps, over_steps, threshold = "0" } = endpoint;
  if (over_steps === "mean") return mean(points);
  if (over_steps !== "steps_to_threshold")
    return sum(stepWeights(endpoint).map((weight, i) => weight.mul(points[i] as Fraction)));
  // Training steps until success first reaches the threshold, interpolated; missing where it never does.
  const at = points.findIndex((point) => point.gte(threshold));
  if (at < 0) return new Missing([`${run} never reached ${Number(threshold)} (censored at step ${steps.at(-1)})`]);
  const [low, high, before, after] = [points[at - 1], points[at] as Fraction, steps[at - 1], steps[at] as number];
  if (!low || before === undefined) return new Fraction(after);
  return new Fraction(threshold).sub(low).div(high.sub(low)).mul(after - before).add(before);
}

type Parts = readonly [above: Fraction, below: Fraction];

function quotient(id: string, counted: readonly (Parts | Missing)[]): Scalar {
  const missing = absent(counted);
  if (missing.length) return together(missing);
  const found = counted as Parts[];
  const below = sum(found.map(([, below]) => below));
  const above = sum(found.map(([above]) => above));
  return below.equals(0) ? new Missing([`${id} is a quotient over zero`]) : above.div(below);
}

/** What the endpoint's outcome is the quotient of, on the one row at a place. */
function parts(endpoint: Endpoint, read: readonly Row[], place: Row): Parts | Missing {
  const row = rowAt(endpoint, read, place);
  if (row instanceof Missing) return row;
  const cell = (column: string): Scalar => {
    if (!column) return new Fraction(1);
    const value = row[column] ?? null; // a study may have left the column out
    if (value !== null) return exact(value as number);
    return new Missing([`${endpoint.register}.${column} of ${row["run_id"] || inWords(endpoint.where)} was not published`]);
  };
  return present([cell(endpoint.outcome.above), cell(endpoint.outcome.below)]) as Parts | Missing;
}

/** The one row at a place of those that an endpoint reads, or what is missing of it. */
export function rowAt(endpoint: Endpoint, read: readonly Row[], place: Row): Row | Missing {
  const matching = having(read, place);
  const where = inWords({ ...endpoint.where, ...place });
  const [row] = matching;
  if (!row) return new Missing([`${endpoint.register} has no row with ${where}`]);
  if (matching.length > 1) throw new Error(`${endpoint.register} has ${matching.length} rows with ${where}`);
  // What a complete evaluation says of its tasks, where its register says anything of them.
  const whole = Object.entries({ tasks: endpoint.tasks, episodes_per_task: endpoint.schedules });
  const said = Object.fromEntries(whole.filter(([name, expected]) => expected && name in row));
  const short = Object.entries({ ...endpoint.expect, ...said })
    .filter(([column, expected]) => String(row[column]) !== String(expected))
    .map(([column, expected]) => `expected ${expected} ${column}, found ${row[column] ?? "None"} at ${where}`);
  return short.length ? new Missing(short) : row;
}

/** That the runs of an endpoint met different tasks, where their register says which they met. */
function otherTasks(endpoint: Endpoint, read: readonly Row[]): Missing | null {
  const met = new Map<unknown, string>();
  for (const { run } of endpoint.runs)
    for (const { task_set, step } of having(read, { run_id: run }))
      if (task_set && !met.has(task_set)) met.set(task_set, `${run} at step ${step}`);
  const [first, other] = met.values();
  return other === undefined ? null : new Missing([`the tasks of ${other} are not those of ${first}`]);
}
