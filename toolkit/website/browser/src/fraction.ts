/** Exact numbers are fractions of fraction.js, which rounds a double that it is given: it is given texts and whole numbers. */

import { Fraction } from "fraction.js";

export { Fraction };

export const ZERO = new Fraction(0);

/** Read `71/1920`, `-0.03` or `1.5e-7`, exactly as written; a double counts as the shortest decimal that prints it. */
export function exact(value: string | number | bigint): Fraction {
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
