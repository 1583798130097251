/** Intervals of a rule: resampled here from the study's episodes, or as recorded. */

import { type Resampled, bootstrap, ranksApart } from "./bootstrap";
import { type Counted, countEpisodes, episodesOf } from "./counted";
import { type Evidence, type IntervalSpec, named } from "./evidence";
import { type Fraction, exact, ofDouble } from "./fraction";
import { Missing } from "./value";

export interface Interval {
  low: Fraction;
  high: Fraction;
  /** Monte Carlo standard errors of the ends; none where they are not known. */
  errors: readonly Fraction[] | null;
  /** What it was made from here; nothing where it stands as recorded. */
  from: { counted: Counted; resampled: Resampled; seed: bigint } | null;
}

/** Intervals by name, or why there are none. */
export type Intervals = ReadonlyMap<string, Interval | Missing>;

/** A choice of the reader; what is left out is as registered. */
export interface Choice {
  seed?: bigint;
  resamples?: number;
}

export type Pause = (done: number) => Promise<void>;

// Beyond this many standard errors, chance is no explanation of a difference (once in 16,000 times).
export const ERRORS = 4;

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
    const { endpoint: id, crossing } = spec;
    const endpoint = named(endpoints, id);
    const counted = known.get(id) ?? countEpisodes(id, endpoint, await episodesOf(study, endpoint), evidence.rows);
    known.set(id, counted);
    const { seed = BigInt(spec.rng_seed), resamples = spec.resamples } = choice;
    const how = { crossing, level: Number(spec.level), resamples, seed };
    const found = await bootstrap(counted.differences, how, async (done) => pause?.((at + done) / specs.length));
    const [low, high] = [ofDouble(found.low), ofDouble(found.high)];
    made.set(name, { low, high, errors: found.errors.map(ofDouble), from: { counted, resampled: found, seed } });
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
export function apart(here: Interval, spec: IntervalSpec): number[] {
  const there = asRecorded(spec);
  if (!here.from || there instanceof Missing) return [0, 0];
  return ranksApart(here.from.resampled, [there.low.valueOf(), there.high.valueOf()], spec.resamples);
}

/** Whether an interval made here agrees with the recorded one within their Monte Carlo errors. */
export function agree(here: Interval, spec: IntervalSpec): boolean {
  return apart(here, spec).every((errors) => errors <= ERRORS);
}
