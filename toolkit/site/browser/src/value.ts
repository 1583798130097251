/** Values of tests: exact numbers, truth, series of them, and what is missing (Kleene's third value). */

// It rounds a double that it is given: it is given texts and whole numbers.
import { Fraction } from "fraction.js";

export { Fraction };

export const ZERO = new Fraction(0);

const WRITTEN = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:\/\d+)?$/i;

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
export type Value = Member | Series;

/** Values by member, in order. */
export class Series {
  constructor(readonly unit: string, readonly items: readonly (readonly [string, Member])[]) {}

  get values(): readonly Member[] {
    return this.items.map(([, value]) => value);
  }

  map(change: (value: Member, place: number) => Member): Series {
    return new Series(this.unit, this.items.map(([key, value], place) => [key, change(value, place)]));
  }
}

/** Read `71/1920`, `-0.03` or `1.5e-7`, exactly as written; a double counts as the shortest decimal that prints it. */
export function exact(value: string | number | bigint): Fraction {
  if (!WRITTEN.test(String(value))) throw new SyntaxError(`no number: ${value}`);
  const [digits = "", exponent = "0"] = String(value).split(/e/i);
  return new Fraction(digits).mul(new Fraction(10).pow(Number(exponent)));
}

/** A double as the whole number of binary parts that it is. */
export function ofDouble(value: number): Fraction {
  let below = 1n;
  for (; !Number.isInteger(value); below *= 2n) value *= 2; // exact: only the exponent changes
  return new Fraction(BigInt(value), below);
}

export function sum(values: readonly Fraction[]): Fraction {
  return values.reduce((total, value) => total.add(value), ZERO);
}

export function mean(values: readonly Fraction[]): Fraction {
  return sum(values).div(values.length);
}

/** To five decimals, for showing. */
export function fixed(value: Fraction): string {
  return value.valueOf().toFixed(5);
}

export function absent(values: readonly unknown[]): Missing[] {
  return values.filter((value) => value instanceof Missing);
}

/** Several missing values as one; it was not run only if none of them was. */
export function together(missing: readonly Missing[]): Missing {
  const reasons = new Set(missing.flatMap((one) => one.reasons));
  return new Missing([...reasons], missing.every((one) => one.notRun));
}

/** All values, or what is missing of them. */
export function present<T>(values: readonly T[]): Exclude<T, Missing>[] | Missing {
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
  return 2 * (won + missing.length) <= truths.length ? false : together(missing);
}
