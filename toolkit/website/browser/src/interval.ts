/** Intervals of a rule: resampled here from the study's episodes, or as recorded. */

import { type Resampled, bootstrap, ranksApart } from "./bootstrap";
import { type Counted, countEpisodes, episodesOf } from "./counted";
import { type Evidence, type IntervalSpec, named } from "./evidence";
import { Fraction } from "./fraction";
import { Missing } from "./value";

export interface Interval {
  low: Fraction;
  high: Fraction;
  /** Monte Carlo standard errors of the ends; none where they are not known. */
  errors: readonly [Fraction, Fraction] | null;
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
  const made = new Map<string, Interval | Missing>();
  const counted = new Map<string, Counted>();
  const specs = Object.entries(evidence.document.intervals);
  for (const [at, [name, spec]] of specs.entries()) {
    const recorded = asRecorded(spec);
    made.set(name, recorded);
    // An interval of seeds alone, or of tasks alone, is not made here.
    if (!choice || recorded instanceof Missing || !evidence.document.resampled.includes(name) || !spec.crossing) continue;
    const endpoint = named(evidence.document.endpoints, spec.endpoint);
    const whole =
      counted.get(spec.endpoint) ??
      countEpisodes(spec.endpoint, endpoint, await episodesOf(evidence.document.study, endpoint), evidence.rows);
    counted.set(spec.endpoint, whole);
    const seed = choice.seed ?? BigInt(spec.rng_seed);
    const resamples = choice.resamples ?? spec.resamples;
    const level = Fraction.read(spec.level).toNumber();
    const how = { crossing: spec.crossing, level, resamples, seed };
    const share: Pause = async (done) => pause?.((at + done) / specs.length);
    made.set(name, asMade(await bootstrap(whole.differences, how, share), whole, seed));
  }
  return made;
}

/** An interval as it was recorded. */
export function asRecorded({ recorded }: IntervalSpec): Interval | Missing {
  if ("missing" in recorded) return new Missing(recorded.missing, recorded.not_run);
  const [low, high] = [recorded.low_error, recorded.high_error];
  const errors = low === null || high === null ? null : ([Fraction.read(low), Fraction.read(high)] as const);
  return { low: Fraction.read(recorded.low), high: Fraction.read(recorded.high), errors, from: null };
}

/**
 * How far the recorded ends lie from those made here, in standard errors of the difference. Counted in ranks among
 * the resamples, as few episodes have few sums: a step from one to the next is no distance.
 */
export function apart(here: Interval, spec: IntervalSpec): [number, number] {
  const there = asRecorded(spec);
  if (!here.from || there instanceof Missing) return [0, 0];
  return ranksApart(here.from.resampled, [there.low.toNumber(), there.high.toNumber()], spec.resamples);
}

/** Whether an interval made here agrees with the recorded one within their Monte Carlo errors. */
export function agree(here: Interval, spec: IntervalSpec): boolean {
  return apart(here, spec).every((errors) => errors <= ERRORS);
}

function asMade(found: Resampled, counted: Counted, seed: bigint): Interval {
  return {
    low: Fraction.ofDouble(found.low),
    high: Fraction.ofDouble(found.high),
    errors: [Fraction.ofDouble(found.lowError), Fraction.ofDouble(found.highError)],
    from: { counted, resampled: found, seed },
  };
}
