/** What an interval shows, in the terms of the tests that hold it against numbers. */

import type { Rule } from "./evidence";
import { type Expression, expanded, parse } from "./expression";
import { Fraction, ZERO } from "./fraction";
import type { Interval } from "./interval";

interface Held {
  end: "lower" | "upper";
  operator: string;
  bound: Fraction;
}

const FLIPPED: Record<string, string> = { ">=": "<=", "<=": ">=", ">": "<", "<": ">" };
const REGION: Record<string, string> = { ">": "above", ">=": "at or above", "<": "below", "<=": "at or below" };
const plain = (value: Fraction) => (value.compare(ZERO) === 0 ? "zero" : String(value.toNumber()));

/** Whether it is inside of what binding tests ask; where none does, whether it includes zero or the threshold. */
export function intervalSays(rule: Rule, interval: Interval, unit: string): string {
  const held = bounds(rule);
  if (held.length) {
    const inside = held.every(({ end, operator, bound }) => {
      const side = (end === "lower" ? interval.low : interval.high).compare(bound);
      return (side === 0 && operator.endsWith("=")) || (operator.startsWith(">") ? side > 0 : side < 0);
    });
    return `${inside ? "" : "not "}${region(held)}`;
  }
  const includes = (value: Fraction) => interval.low.compare(value) <= 0 && value.compare(interval.high) <= 0;
  const threshold = rule.threshold === null ? ZERO : Fraction.read(rule.threshold);
  const none = unit === "ratio" ? Fraction.of(1) : ZERO;
  const named = includes(none) ? [plain(none)] : [];
  if (threshold.compare(ZERO) !== 0 && includes(threshold)) named.push(`the threshold ${plain(threshold)}`);
  return named.length ? `includes ${named.join(" and ")}` : `excludes ${plain(none)}`;
}

/** How binding criteria hold the interval's ends against numbers; nothing where these make no region. */
function bounds(rule: Rule): Held[] {
  const binding = rule.criteria.filter(({ reading }) => reading === null || reading === rule.binding);
  const found = binding.flatMap(({ test }) => [...heldIn(parse(test), rule.interval)]);
  const below = found.filter(({ end, operator }) => end === "lower" && operator.startsWith(">"));
  const above = found.filter(({ end, operator }) => end === "upper" && operator.startsWith("<"));
  const [low, high] = [below[0]?.bound, above[0]?.bound];
  const isRegion = below.length <= 1 && above.length <= 1 && below.length + above.length === found.length;
  return !isRegion || (low && high && low.compare(high) >= 0) ? [] : found;
}

function region(held: readonly Held[]): string {
  const [low, high] = held.map(({ bound }) => bound).sort((a, b) => a.compare(b)) as [Fraction, Fraction?];
  if (!high) return `${REGION[held[0]?.operator ?? ""]} ${plain(low)}`;
  return low.plus(high).compare(ZERO) === 0 ? `inside ±${plain(high)}` : `inside ${plain(low)} to ${plain(high)}`;
}

/** Every comparison of the interval's ends with a number that has to hold. */
function* heldIn(expression: Expression, interval: string): Generator<Held> {
  if (expression.kind === "call") {
    if (expression.operator === "equivalent" || expression.operator === "non_inferior") {
      yield* heldIn(expanded(expression), interval);
    } else if (expression.operator === "all") {
      for (const part of expression.inside) yield* heldIn(part, interval);
    }
  }
  if (expression.kind !== "binary" || !(expression.operator in FLIPPED)) return;
  const { left, right, operator } = expression;
  for (const [side, other, sign] of [[left, right, operator], [right, left, FLIPPED[operator] as string]] as const) {
    const bound = constant(other);
    if (!bound || side.kind !== "call" || (side.operator !== "lower" && side.operator !== "upper")) continue;
    const [named] = side.inside;
    if (named?.kind === "name" && named.name === interval) yield { end: side.operator, operator: sign, bound };
  }
}

function constant(expression: Expression): Fraction | null {
  if (expression.kind === "number") return expression.value;
  const isDifference = expression.kind === "binary" && expression.operator === "-";
  if (!isDifference || expression.left.kind !== "number" || expression.right.kind !== "number") return null;
  return expression.left.value.minus(expression.right.value);
}
