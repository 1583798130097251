/**
 * The registered interval: percentile bootstrap over seed pairs and tasks. A task stands for all its schedules;
 * episodes are never pooled as independent samples.
 */

import { Random } from "./random";

/** Differences of seed pairs and tasks as whole numbers over one denominator, so that every sum is exact. */
export interface Differences {
  /** A row a seed pair, a column a task. */
  numerators: Float64Array[];
  denominator: number;
}

export interface Resampled {
  low: number;
  high: number;
  /** Monte Carlo standard errors of the ends. */
  lowError: number;
  highError: number;
  /** The mean of each resample, sorted. */
  means: Float64Array;
  level: number;
}

interface Resampling {
  crossing: "crossed" | "nested";
  level: number;
  resamples: number;
  seed: bigint;
}

// Doubles hold every whole number up to here.
const LARGEST_WHOLE = 2 ** 53;
// Numbers added up between two looks at the clock: some ten milliseconds.
const PORTION = 5_000_000;
// Errors on either side of an end over which its own error is measured; why, says toolkit/estimators/bootstrap.py.
const ERRORS_AROUND = 4;

/**
 * Resample.
 *
 * @param pause called between portions with the share that is done; may wait, or throw to stop
 */
export async function bootstrap(
  differences: Differences,
  how: Resampling,
  pause: (done: number) => Promise<void> = async () => {},
): Promise<Resampled> {
  const { numerators, denominator } = differences;
  const seeds = numerators.length;
  const tasks = numerators[0]?.length ?? 0;
  if (seeds < 2 || tasks < 2) throw new RangeError(`nothing to resample: ${seeds} seeds, ${tasks} tasks`);
  const largest = numerators.reduce((most, row) => row.reduce((m, n) => Math.max(m, Math.abs(n)), most), 0);
  const size = seeds * tasks;
  if (largest * size >= LARGEST_WHOLE) throw new RangeError("the sums are too large to be exact");
  const random = [new Random(how.seed, 1), new Random(how.seed, 2)] as const;
  const draw = how.crossing === "crossed" ? crossed : nested;
  const means = new Float64Array(how.resamples);
  const portion = Math.max(1, Math.floor(PORTION / (size + tasks)));
  for (let at = 0; at < how.resamples; at++) {
    means[at] = draw(numerators, ...random) / (size * denominator);
    if (at % portion === portion - 1) await pause((at + 1) / how.resamples);
  }
  return percentiles(means, how.level);
}

/** One draw of tasks shared by all drawn seeds. */
function crossed(numerators: Float64Array[], ofSeeds: Random, ofTasks: Random): number {
  const [seeds, tasks] = [numerators.length, (numerators[0] as Float64Array).length];
  const times = occurrences(seeds, ofSeeds);
  const weights = occurrences(tasks, ofTasks);
  let total = 0;
  for (let seed = 0; seed < seeds; seed++) {
    const often = times[seed] as number;
    if (often) total += often * dot(numerators[seed] as Float64Array, weights);
  }
  return total;
}

/** Tasks drawn anew for every drawn seed. */
function nested(numerators: Float64Array[], ofSeeds: Random, ofTasks: Random): number {
  const [seeds, tasks] = [numerators.length, (numerators[0] as Float64Array).length];
  let total = 0;
  for (let slot = 0; slot < seeds; slot++)
    total += dot(numerators[ofSeeds.below(seeds)] as Float64Array, occurrences(tasks, ofTasks));
  return total;
}

/** How often each of `size` members occurs among as many draws with replacement. */
function occurrences(size: number, random: Random): Float64Array {
  const times = new Float64Array(size);
  for (let i = 0; i < size; i++) times[random.below(size)]! += 1;
  return times;
}

/** The sum of products, four at a time: one addition does not wait for the one before it. */
function dot(a: Float64Array, b: Float64Array): number {
  let [first, second, third, fourth, i] = [0, 0, 0, 0, 0];
  for (; i + 3 < a.length; i += 4) {
    first += (a[i] as number) * (b[i] as number);
    second += (a[i + 1] as number) * (b[i + 1] as number);
    third += (a[i + 2] as number) * (b[i + 2] as number);
    fourth += (a[i + 3] as number) * (b[i + 3] as number);
  }
  for (; i < a.length; i++) first += (a[i] as number) * (b[i] as number);
  return first + second + third + fourth;
}

/** The ends, and their errors from the slope of the order statistics around them; the means are sorted in place. */
function percentiles(means: Float64Array, level: number): Resampled {
  means.sort();
  const last = means.length - 1;
  const at = (place: number) => means[Math.min(Math.max(place, 0), last)] as number;
  const end = (tail: number) => {
    const [under, over] = [at(Math.floor(tail * last)), at(Math.ceil(tail * last))];
    return under + (tail * last - Math.floor(tail * last)) * (over - under);
  };
  const error = (tail: number) => {
    const one = Math.sqrt(means.length * tail * (1 - tail));
    const place = (step: number) => Math.min(Math.max(Math.round(tail * last + step), 0), last);
    const [below, above] = [place(-ERRORS_AROUND * one), place(ERRORS_AROUND * one)];
    return (one / Math.max(above - below, 1)) * (at(above) - at(below));
  };
  const [low, high] = [(1 - level) / 2, (1 + level) / 2];
  return { low: end(low), high: end(high), lowError: error(low), highError: error(high), means, level };
}

/** Ranks between each end and that of `others` other resamples, in standard errors of the difference of two ranks. */
export function ranksApart({ means, level }: Resampled, ends: [number, number], others: number): [number, number] {
  const from = (tail: number, end: number) => {
    const rank = tail * (means.length - 1);
    // An end lies on all the ranks of its value at once.
    const [first, after] = [countBelow(means, (mean) => mean < end), countBelow(means, (mean) => mean <= end)];
    const ranks = Math.max(first - rank, rank - after, 0);
    return ranks / Math.sqrt(means.length * tail * (1 - tail) * (1 + means.length / others));
  };
  return [from((1 - level) / 2, ends[0]), from((1 + level) / 2, ends[1])];
}

/** How many sorted numbers come before the first that `isBefore` is not true of. */
function countBelow(sorted: Float64Array, isBefore: (mean: number) => boolean): number {
  const found = sorted.findIndex((mean) => !isBefore(mean));
  return found < 0 ? sorted.length : found;
}
