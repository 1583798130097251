/** Values of tests: exact numbers, truth, series of them, and what is missing (Kleene's third value). */

import { Fraction } from "./fraction";

/** Why there is no value. */
export class Missing {
  constructor(
    readonly reasons: readonly string[],
    /** The runs that it needs were never made; otherwise they were, and something else is missing. */
    readonly notRun = false,
  ) {}
}

export type Scalar = Fraction | Missing;
export type Truth = boolean | Missing;
export type Member = Fraction | boolean | Missing;

/** Values by member, in order. */
export class Series {
  constructor(readonly unit: string, readonly items: readonly (readonly [string, Member])[]) {}

  get values(): readonly Member[] {
    return this.items.map(([, value]) => value);
  }

  at(place: number): Member {
    return this.items[place]?.[1] as Member;
  }

  map(change: (value: Member, place: number) => Member): Series {
    return new Series(this.unit, this.items.map(([key, value], place) => [key, change(value, place)]));
  }
}

export type Value = Member | Series;

export function absent(values: readonly unknown[]): Missing[] {
  return values.filter((value) => value instanceof Missing);
}

/** Several missing values as one; it was not run only if none of them was. */
export function together(missing: readonly Missing[]): Missing {
  const reasons = new Set(missing.flatMap((one) => one.reasons));
  return new Missing([...reasons], missing.every((one) => one.notRun));
}

/** All values, or what is missing of them. */
export function present<T extends Member>(values: readonly T[]): Exclude<T, Missing>[] | Missing {
  const missing = absent(values);
  return missing.length ? together(missing) : (values as Exclude<T, Missing>[]);
}

/** Conjunction: lost as soon as one is lost, unknown if none is lost and one is unknown. */
export function all(truths: readonly Truth[]): Truth {
  if (truths.includes(false)) return false;
  const missing = absent(truths);
  return missing.length ? together(missing) : true;
}

export function not(truth: Truth): Truth {
  return truth instanceof Missing ? truth : !truth;
}

/** Disjunction: won as soon as one is won, unknown if none is won and one is unknown. */
export function any(truths: readonly Truth[]): Truth {
  return not(all(truths.map(not)));
}

/** More than half hold; unknown while the unknown ones could still turn it. */
export function majority(truths: readonly Truth[]): Truth {
  const won = truths.filter((truth) => truth === true).length;
  const missing = absent(truths);
  if (2 * won > truths.length) return true;
  if (2 * (won + missing.length) <= truths.length) return false;
  return together(missing);
}
