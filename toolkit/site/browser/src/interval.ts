/**
 * Intervals of a rule: as recorded, or resampled here from the study's episodes, by a percentile bootstrap over seed
 * pairs and tasks. A task stands for all its schedules; episodes are never pooled as independent samples.
 */

import { uniformInt } from "pure-rand/distribution/uniformInt";
import { xoroshiro128plusFromState } from "pure-rand/generator/xoroshiro128plus";
import type { RandomGenerator } from "pure-rand/types/RandomGenerator";
import { skipN } from "pure-rand/utils/skipN";
import { type Counted, countEpisodes, episodesOf } from "./counted";
import { type Evidence, type IntervalSpec, named } from "./evidence";
import { type Fraction, Missing, exact, ofDouble } from "./value";

export interface Interval {
  low: Fraction;
  high: Fraction;
  /** Monte Carlo standard errors of the ends; none where they are not known. */
  errors: readonly Fraction[] | null;
  /** What it was made from here: the mean of each resample, sorted; nothing where it stands as recorded. */
  from: { counted: Counted; means: Float64Array; seed: bigint } | null;
}

/** Intervals by name, or why there are none. */
export type Intervals = ReadonlyMap<string, Interval | Missing>;

/** A choice of the reader; what is left out is as registered. */
export interface Choice {
  seed?: bigint;
  resamples?: number;
}

/** Called between portions with the share that is done; may wait, or throw to stop. */
export type Pause = (done: number) => Promise<void>;

// Beyond this many standard errors, chance is no explanation of a difference (once in 16,000 times).
export const ERRORS = 4;
// Doubles hold every whole number up to here.
const LARGEST_WHOLE = 2 ** 53;
// Numbers added up between two looks at the clock: some ten milliseconds.
const PORTION = 5_000_000;
// Errors on either side of an end over which its own error is measured; why, says toolkit/estimators/bootstrap.py.
const ERRORS_AROUND = 4;


/** The intervals that a rule rests on, by name: resampled where there is a choice, and as recorded otherwise. */
export async function intervalsOf(evidence: Evidence, choice?: Choice, pause?: Pause): Promise<Intervals> {
  const { study, endpoints, intervals, resampled } = evidence.document;
  const made = new Map<string, Interval | Missing>();
  const known = new Map<string, Counted>();
  const specs = Object.entries(intervals);
  for (const [at, [name, spec]] of specs.entries()) {
    const recorded = asRecorded(spec);
    made.set(name, recorded);
    // An interval of seeds alone, or of tasks alone, is not made here.
    if (!choice || recorded instanceof Missing || !resampled.includes(name) || !spec.crossing) continue;
    const endpoint = named(endpoints, spec.endpoint);
    const counted =
      known.get(spec.endpoint) ??
      countEpisodes(spec.endpoint, endpoint, await episodesOf(study, endpoint), evidence.rows);
    known.set(spec.endpoint, counted);
    const { seed = BigInt(spec.rng_seed), resamples = spec.resamples } = choice;
    const share: Pause = async (done) => pause?.((at + done) / specs.length);
    const means = await resample(counted, spec.crossing === "crossed", resamples, seed, share);
    const ends = tailsOf(spec).map((tail) => percentile(means, tail));
    const [[low, lower], [high, upper]] = ends as [[Fraction, Fraction], [Fraction, Fraction]];
    made.set(name, { low, high, errors: [lower, upper], from: { counted, means, seed } });
  }
  return made;
}

/** An interval as it was recorded. */
export function asRecorded({ recorded }: IntervalSpec): Interval | Missing {
  if ("missing" in recorded) return new Missing(recorded.missing, recorded.not_run);
  const { low, high, low_error, high_error } = recorded;
  const errors = low_error === null || high_error === null ? null : [exact(low_error), exact(high_error)];
  return { low: exact(low), high: exact(high), errors, from: null };
}

/** Whether a number lies in an interval, its ends included. */
export function includes({ low, high }: Interval, number: Fraction): boolean {
  return low.lte(number) && high.gte(number);
}

/**
 * How far the recorded ends lie from those made here, in standard errors of the difference. Counted in ranks among
 * the resamples, as few episodes have few sums: a step from one to the next is no distance.
 */
export function apart({ from }: Interval, spec: IntervalSpec): number[] {
  const there = asRecorded(spec);
  if (!from || there instanceof Missing) return [0, 0];
  const { length } = from.means;
  return tailsOf(spec).map((tail, upper) => {
    const end = (upper ? there.high : there.low).valueOf();
    const rank = tail * (length - 1);
    // An end lies on all the ranks of its value at once.
    const [first, after] = [from.means.filter((one) => one < end).length, from.means.filter((one) => one <= end).length];
    const ranks = Math.max(first - rank, rank - after, 0);
    return ranks / Math.sqrt(length * tail * (1 - tail) * (1 + length / spec.resamples));
  });
}

/** Whether an interval made here agrees with the recorded one within their Monte Carlo errors. */
export function agree(here: Interval, spec: IntervalSpec): boolean {
  return apart(here, spec).every((errors) => errors <= ERRORS);
}

function tailsOf(spec: IntervalSpec): number[] {
  return [-1, 1].map((side) => (1 + side * Number(spec.level)) / 2);
}

/** The mean of each resample, sorted. Crossed, one draw of tasks is shared by all drawn seeds. */
async function resample(
  { numerators, denominator }: Counted,
  isCrossed: boolean,
  resamples: number,
  seed: bigint,
  pause: Pause,
): Promise<Float64Array> {
  const seeds = numerators.length;
  const tasks = numerators[0]?.length ?? 0;
  if (seeds < 2 || tasks < 2) throw new RangeError(`nothing to resample: ${seeds} seeds, ${tasks} tasks`);
  const largest = numerators.reduce((most, row) => row.reduce((m, n) => Math.max(m, Math.abs(n)), most), 0);
  const size = seeds * tasks;
  if (largest * size >= LARGEST_WHOLE) throw new RangeError("the sums are too large to be exact");
  const [ofSeeds, ofTasks] = streams(seed);
  const means = new Float64Array(resamples);
  const portion = Math.max(1, Math.floor(PORTION / (size + tasks)));
  for (let at = 0; at < resamples; at++) {
    const shared = isCrossed ? occurrences(tasks, ofTasks) : null;
    let total = 0;
    occurrences(seeds, ofSeeds).forEach((often, i) => {
      const row = numerators[i] as Float64Array;
      if (shared && often) total += often * dot(row, shared);
      else for (let slot = 0; slot < often; slot++) total += dot(row, occurrences(tasks, ofTasks));
    });
    means[at] = total / (size * denominator);
    if (at % portion === portion - 1) await pause((at + 1) / resamples);
  }
  return means.sort();
}

/** How often each of `size` members occurs among as many draws with replacement. */
function occurrences(size: number, random: RandomGenerator): Float64Array {
  const times = new Float64Array(size);
  for (let i = 0; i < size; i++) times[uniformInt(random, 0, size - 1)]! += 1;
  return times;
}

function dot(a: Float64Array, b: Float64Array): number {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += (a[i] as number) * (b[i] as number);
  return total;
}

/** A percentile of sorted means, and its error from the slope of the order statistics around it. */
function percentile(means: Float64Array, tail: number): [Fraction, Fraction] {
  const last = means.length - 1;
  const at = (place: number) => means[place] as number;
  const [under, over] = [Math.floor(tail * last), Math.ceil(tail * last)];
  const end = at(under) + (tail * last - under) * (at(over) - at(under));
  const one = Math.sqrt(means.length * tail * (1 - tail));
  const place = (step: number) => Math.min(Math.max(Math.round(tail * last + step), 0), last);
  const [below, above] = [place(-ERRORS_AROUND * one), place(ERRORS_AROUND * one)];
  return [ofDouble(end), ofDouble((one / Math.max(above - below, 1)) * (at(above) - at(below)))];
}

/**
 * Two streams of random bits from one seed, far apart in the sequence of xoroshiro128+. It is not numpy's PCG64, with
 * which recorded intervals were drawn: the same seed gives other resamples here, and ends that agree within their
 * Monte Carlo errors only.
 */
function streams(seed: bigint): [RandomGenerator, RandomGenerator] {
  const words = [seed >> 32n, seed].map((word) => Number(BigInt.asIntN(32, word)));
  const first = xoroshiro128plusFromState([...words, ...words.map((word) => ~word)]);
  skipN(first, 64); // until every bit of the state depends on every bit of the seed
  const second = first.clone();
  second.jump();
  return [first, second];
}
