/** From the rows of a register to the value of an endpoint, exactly. */

import type { Endpoint, Row, Rows } from "./evidence";
import { Fraction, mean, sum } from "./fraction";
import { Missing, type Scalar, Series, present, together } from "./value";

/** An endpoint's value; throws where rows contradict each other, or a value lies outside its declared range. */
export function measure(id: string, endpoint: Endpoint, registers: Rows): Scalar | Series<Scalar> {
  const value = measured(id, endpoint, registers);
  const [low, high] = [Fraction.read(endpoint.low), Fraction.read(endpoint.high)];
  for (const one of value instanceof Series ? value.values : [value])
    if (one instanceof Fraction && (one.compare(low) < 0 || one.compare(high) > 0))
      throw new Error(`${id} has a value outside its declared range: ${one.toNumber()}`);
  return value;
}

/** The weights of an endpoint's steps in its value; they sum to one, and of a gain to zero. */
export function stepWeights(endpoint: Endpoint): Fraction[] {
  const { steps } = endpoint;
  if (!["auc", "auc_gain"].includes(endpoint.over_steps)) return steps.map(() => Fraction.of(1, steps.length));
  // The trapezoidal mean: half of each neighbouring gap, over the span.
  const gaps = steps.slice(1).map((after, i) => after - (steps[i] as number));
  const span = 2 * ((steps.at(-1) as number) - (steps[0] as number));
  const first = endpoint.over_steps === "auc_gain" ? span : 0;
  return steps.map((_, i) => Fraction.of((gaps[i - 1] ?? 0) + (gaps[i] ?? 0) - (i === 0 ? first : 0), span));
}

/** The row of a run's evaluation at a step, or what is missing of it. */
export function rowAt(id: string, endpoint: Endpoint, registers: Rows, run: string, step: number): Row | Missing {
  return oneRow(endpoint, table(id, endpoint, registers), { run_id: run, step });
}

function measured(id: string, endpoint: Endpoint, registers: Rows): Scalar | Series<Scalar> {
  if (!endpoint.has_register) {
    const absent = new Missing([endpoint.lacks ?? `the study has no register '${endpoint.register}'`]);
    const isSeries = ["seed", "run", "checkpoint"].includes(endpoint.by);
    return isSeries ? new Series(endpoint.by, endpoint.members.map((m) => [m, absent])) : absent;
  }
  const rows = table(id, endpoint, registers);
  if (endpoint.by === "row") return number(id, endpoint, rows, singleStep(endpoint));
  if (endpoint.by === "checkpoint") {
    const values = endpoint.checkpoints.map((place) => number(id, endpoint, rows, { ...place }));
    return new Series("checkpoint", endpoint.members.map((member, i) => [member, values[i] as Scalar]));
  }
  const apart = otherTasks(endpoint, rows);
  const runs = endpoint.runs.map(({ run, missing = [], not_run }) => (run ? (apart ?? run) : new Missing(missing, not_run)));
  if (endpoint.by === "pooled") return pooled(id, endpoint, rows, runs);
  const levels = runs.map((run) => level(id, endpoint, rows, run));
  if (endpoint.by === "seed")
    return new Series("seed", endpoint.seeds.map((seed) => [`${seed}`, contrast(endpoint, levels, seed)]));
  return new Series(
    "run",
    runs.map((run, i) => [typeof run === "string" ? run : (endpoint.members[i] ?? ""), levels[i] as Scalar]),
  );
}

function table(id: string, endpoint: Endpoint, registers: Rows): readonly Row[] {
  const rows = registers.get(id) ?? registers.get(endpoint.register);
  if (!rows) throw new Error(`no rows of ${endpoint.register} were read`);
  return rows;
}

const indices = new WeakMap<readonly Row[], Map<string, Map<string, Row[]>>>();

/** The rows that have some values, found by an index for each set of columns that was asked by. */
export function having(rows: readonly Row[], wanted: Row): readonly Row[] {
  const names = Object.keys(wanted);
  let known = indices.get(rows);
  if (!known) indices.set(rows, (known = new Map()));
  let index = known.get(names.join());
  if (!index) {
    known.set(names.join(), (index = new Map()));
    for (const row of rows) {
      if (names.some((name) => row[name] === null || row[name] === undefined)) continue; // equals nothing
      const key = keyOf(row, names);
      const there = index.get(key);
      if (there) there.push(row);
      else index.set(key, [row]);
    }
  }
  return index.get(keyOf(wanted, names)) ?? [];
}

/** What rows are asked to have, as an error says it. */
export function inWords(wanted: Row): string {
  return Object.entries(wanted).map(([name, value]) => `${name}=${value}`).join(", ");
}

/** Values as one text: wide whole numbers come as BigInt, and mean the same. */
function keyOf(row: Row, names: readonly string[]): string {
  return names.map((name) => String(row[name])).join("\u0000");
}

/** The first arm minus the second, or the only arm, of one seed. */
function contrast(endpoint: Endpoint, levels: readonly Scalar[], seed: number): Scalar {
  const values = present(levels.filter((_, i) => endpoint.runs[i]?.seed === seed));
  if (values instanceof Missing) return values;
  const [first, second] = values as [Fraction, Fraction | undefined];
  return second ? first.minus(second) : first;
}

/** One run's number: a single step's, or the summary over the registered steps. */
function level(id: string, endpoint: Endpoint, rows: readonly Row[], run: string | Missing): Scalar {
  if (run instanceof Missing) return run;
  if (!endpoint.over_steps) return number(id, endpoint, rows, { run_id: run, ...singleStep(endpoint) });
  const points = present(endpoint.steps.map((step) => number(id, endpoint, rows, { run_id: run, step })));
  if (points instanceof Missing) return points;
  if (endpoint.over_steps === "steps_to_threshold") return stepsTo(endpoint, run, points);
  if (endpoint.over_steps === "mean") return mean(points);
  return sum(stepWeights(endpoint).map((weight, i) => weight.times(points[i] as Fraction)));
}

/** Training steps until success first reaches the threshold, interpolated; missing where it never does. */
function stepsTo(endpoint: Endpoint, run: string, points: readonly Fraction[]): Scalar {
  const threshold = Fraction.read(endpoint.threshold ?? "0");
  const at = points.findIndex((point) => point.compare(threshold) >= 0);
  const step = (i: number) => Fraction.of(endpoint.steps[i] as number);
  if (at < 0) {
    const reason = `${run} never reached ${threshold.toNumber()} (censored at step ${endpoint.steps.at(-1)})`;
    return new Missing([reason]);
  }
  if (at === 0) return step(0);
  const [low, high] = [points[at - 1] as Fraction, points[at] as Fraction];
  const share = threshold.minus(low).over(high.minus(low));
  return step(at - 1).plus(step(at).minus(step(at - 1)).times(share));
}

/** The rate of the counts of all seeds together. */
function pooled(id: string, endpoint: Endpoint, rows: readonly Row[], runs: readonly (string | Missing)[]): Scalar {
  const pairs = runs.map((run) => {
    if (run instanceof Missing) return run;
    const row = oneRow(endpoint, rows, { run_id: run, ...singleStep(endpoint) });
    return row instanceof Missing ? row : counts(endpoint, row);
  });
  const missing = pairs.filter((pair) => pair instanceof Missing);
  if (missing.length) return together(missing);
  const found = pairs as [Fraction, Fraction][];
  return quotient(id, sum(found.map(([count]) => count)), sum(found.map(([, of]) => of)));
}

/** The endpoint's outcome on the one row at a place. */
function number(id: string, endpoint: Endpoint, rows: readonly Row[], place: Row): Scalar {
  const row = oneRow(endpoint, rows, place);
  if (row instanceof Missing) return row;
  const { outcome } = endpoint;
  if ("count" in outcome) {
    const pair = counts(endpoint, row);
    return pair instanceof Missing ? pair : quotient(id, ...pair);
  }
  const figure = cell(endpoint, row, outcome.figure);
  if (outcome.over === null || figure instanceof Missing) return figure;
  const over = cell(endpoint, row, outcome.over);
  return over instanceof Missing ? over : quotient(id, figure, over);
}

function oneRow(endpoint: Endpoint, rows: readonly Row[], place: Row): Row | Missing {
  const wanted: Row = { ...endpoint.where, ...place };
  const matching = having(rows, wanted);
  const where = inWords(wanted);
  const [row] = matching;
  if (!row) return new Missing([`${endpoint.register} has no row with ${where}`]);
  if (matching.length > 1) throw new Error(`${endpoint.register} has ${matching.length} rows with ${where}`);
  const short = Object.entries({ ...endpoint.expect, ...wholeSet(endpoint, row) })
    .filter(([column, expected]) => !same(row[column], expected))
    .map(([column, expected]) => `expected ${expected} ${column}, found ${row[column] ?? "None"} at ${where}`);
  return short.length ? new Missing(short) : row;
}

/** What a complete evaluation says of its tasks, where its register says anything of them. */
function wholeSet(endpoint: Endpoint, row: Row): Record<string, number> {
  const said = { tasks: endpoint.tasks, episodes_per_task: endpoint.schedules };
  return Object.fromEntries(Object.entries(said).filter(([name, expected]) => expected && name in row));
}

/** That the runs of an endpoint met different tasks, where their register says which they met. */
function otherTasks(endpoint: Endpoint, rows: readonly Row[]): Missing | null {
  const met = new Map<unknown, string>();
  for (const { run } of endpoint.runs) {
    if (run === undefined) continue;
    for (const row of having(rows, { ...endpoint.where, run_id: run })) {
      if (!row["task_set"]) continue;
      if (endpoint.steps.length && !endpoint.steps.some((step) => same(row["step"], step))) continue;
      if (!met.has(row["task_set"])) met.set(row["task_set"], `${run} at step ${row["step"]}`);
    }
  }
  const [first, other] = met.values();
  return other === undefined ? null : new Missing([`the tasks of ${other} are not those of ${first}`]);
}

function singleStep(endpoint: Endpoint): Row {
  return endpoint.steps.length ? { step: endpoint.steps[0] } : {};
}

function counts(endpoint: Endpoint, row: Row): [Fraction, Fraction] | Missing {
  if (!("count" in endpoint.outcome)) throw new Error("an endpoint of figures has no counts");
  const cells = present([endpoint.outcome.count, endpoint.outcome.of].map((name) => cell(endpoint, row, name)));
  return cells instanceof Missing ? cells : (cells as [Fraction, Fraction]);
}

function cell(endpoint: Endpoint, row: Row, column: string): Scalar {
  const value = row[column] ?? null; // a study may have left the column out
  if (value === null) {
    return new Missing([`${endpoint.register}.${column} of ${row["run_id"] || inWords(endpoint.where)} was not published`]);
  }
  return Fraction.stored(value as number | bigint | string);
}

function quotient(id: string, above: Fraction, below: Fraction): Scalar {
  return below.isZero ? new Missing([`${id} is a quotient over zero`]) : above.over(below);
}

/** Whether a cell has a value; nothing at all equals nothing. */
function same(found: unknown, wanted: unknown): boolean {
  return found !== null && found !== undefined && String(found) === String(wanted);
}
