/** Evaluating an expression: exact numbers, Kleene truth, nothing missing ever counted as zero. */

import { type Expression, expanded } from "./expression";
import { Fraction, type Member, Missing, type Scalar, Series, type Truth, type Value } from "./value";
import { absent, all, any, majority, mean, not, present, sum, together } from "./value";

export type Role = "value" | "lower" | "upper" | "p" | "adjusted" | "passes";
type Resolve = (role: Role, name: string) => Value;
/** What an operator gives; null of an empty series. */
type Operator = (...values: Value[]) => Value | null;

const NAMED: readonly string[] = ["lower", "upper", "p", "adjusted", "passes"] satisfies Role[];
// Far beyond any endpoint, and still a double.
const LARGEST = new Fraction(10n ** 100n);

const OPERATORS: Record<string, Operator> = {
  ">=": elementwise((a, b) => a.gte(b)),
  "<=": elementwise((a, b) => a.lte(b)),
  ">": elementwise((a, b) => a.gt(b)),
  "<": elementwise((a, b) => a.lt(b)),
  "=": elementwise((a, b) => a.equals(b)),
  "+": elementwise((a, b) => inBounds(a.add(b))),
  "-": elementwise((a, b) => inBounds(a.sub(b))),
  "*": elementwise((a, b) => inBounds(a.mul(b))),
  "/": elementwise((a, b) => (b.equals(0) ? new Missing(["a quotient over zero"]) : inBounds(a.div(b)))),
  abs: elementwise((x) => x.abs()),
  within: bounded((x, centre, margin) => x.sub(centre).abs().lte(margin)),
  between: bounded((x, low, high) => low.lte(x) && x.lte(high)),
  all: (...values) => all(values.map(truth)),
  any: (...values) => any(values.map(truth)),
  not: (value) => not(truth(value)),
  each: ofTruths(all),
  majority: ofTruths(majority),
  count: ofTruths((truths) => {
    const held = present(truths);
    return held instanceof Missing ? held : new Fraction(held.filter(Boolean).length);
  }),
  decreasing: (value) => {
    const { items } = series(value);
    return ofTruths(all)(new Series("place", items.slice(1).map(([key, after], i) => [key, smaller(after, items[i]?.[1])])));
  },
  rest: (value) => new Series(series(value).unit, series(value).items.slice(1)),
  list: (...values) => new Series("place", values.map((one, i) => [`${i + 1}`, one as Scalar])),
  mean: ofNumbers(mean),
  min: ofNumbers((values) => values.reduce((a, b) => (b.lt(a) ? b : a))),
  max: ofNumbers((values) => values.reduce((a, b) => (b.gt(a) ? b : a))),
  first: ofNumbers((values) => values[0] as Fraction),
  last: ofNumbers((values) => values.at(-1) as Fraction),
  variance: ofNumbers(variance),
  slope: ofPairs(slope),
  rank_correlation: ofPairs(rankCorrelation),
};

export function evaluate(expression: Expression, resolve: Resolve): Value {
  if (expression instanceof Fraction) return expression;
  if (typeof expression === "string") return resolve("value", expression);
  const { operator, inside } = expression;
  const [first] = inside;
  if (NAMED.includes(operator) && typeof first === "string") return resolve(operator as Role, first);
  if (operator === "equivalent" || operator === "non_inferior") return evaluate(expanded(expression), resolve);
  const apply = OPERATORS[operator];
  if (!apply) throw new SyntaxError(`the rule language has no operator ${operator}`);
  return apply(...inside.map((part) => evaluate(part, resolve))) ?? new Missing([`${operator} of an empty series`]);
}

/** Of numbers, or member by member where there are series; missing where one of them is. */
function elementwise(change: (...numbers: [Fraction, Fraction]) => Member): (...values: Value[]) => Value {
  const apply = (...values: Value[]): Value => {
    const listed = values.filter((value) => value instanceof Series);
    const [first] = listed;
    if (first) {
      listed.forEach((other) => checkMembers(first, other));
      const at = (i: number) => values.map((value) => (value instanceof Series ? (value.values[i] as Member) : value));
      return first.map((_, i) => apply(...at(i)) as Member);
    }
    const missing = absent(values);
    return missing.length ? together(missing) : change(...(values.map(number) as [Fraction, Fraction]));
  };
  return apply;
}

const smaller = elementwise((a, b) => a.lt(b)) as (...numbers: unknown[]) => Truth;

/** A number, or every member of a series, held against two more. */
function bounded(inside: (x: Fraction, a: Fraction, b: Fraction) => boolean): Operator {
  return (value, ...bounds) => {
    const missing = absent(bounds);
    const [a, b] = missing.length ? [] : bounds.map(number);
    if (a && b) return elementwise((x) => inside(x, a, b))(value as Value);
    return value instanceof Series ? value.map(() => together(missing)) : together(missing);
  };
}

function ofTruths(reduce: (truths: Truth[]) => Value): Operator {
  return (value) => {
    const truths = series(value).values.map(truth);
    return truths.length ? reduce(truths) : null;
  };
}

function ofNumbers(reduce: (values: Fraction[]) => Scalar): Operator {
  return (value) => {
    const members = present(series(value).values as Scalar[]);
    if (members instanceof Missing) return members;
    return members.length ? inBounds(reduce(members)) : null;
  };
}

function ofPairs(reduce: (ones: Fraction[], others: Fraction[]) => Scalar): Operator {
  return (one, other) => {
    const [first, second] = [series(one), series(other)];
    checkMembers(first, second);
    const size = first.items.length;
    return ofNumbers((members) => reduce(members.slice(0, size), members.slice(size)))(
      new Series("", [...first.items, ...second.items]),
    );
  };
}

function inBounds(value: Scalar): Scalar {
  return value instanceof Missing || value.abs().lt(LARGEST) ? value : new Missing(["a number beyond all bounds"]);
}

/** The sample variance. */
function variance(values: Fraction[]): Scalar {
  if (values.length < 2) return new Missing(["variance of a single number"]);
  return sum(fromMean(values).map((one) => one.mul(one))).div(values.length - 1);
}

/** The slope of the least-squares line of y on x, with an intercept. */
function slope(y: Fraction[], x: Fraction[]): Scalar {
  const [down, across] = [fromMean(y), fromMean(x)];
  const spread = sum(across.map((one) => one.mul(one)));
  if (spread.equals(0)) return new Missing(["a slope over a single place"]);
  return sum(across.map((one, i) => one.mul(down[i] as Fraction))).div(spread);
}

/** Kendall's tau-a. */
function rankCorrelation(x: Fraction[], y: Fraction[]): Scalar {
  if (x.length < 2) return new Missing(["rank correlation of a single pair"]);
  const agreeing = x.flatMap((one, i) => x.slice(0, i).map((other, j) => one.compare(other) * y[i]!.compare(y[j]!)));
  return new Fraction(agreeing.reduce((a, b) => a + b), agreeing.length);
}

function fromMean(values: Fraction[]): Fraction[] {
  const centre = mean(values);
  return values.map((value) => value.sub(centre));
}

function checkMembers(left: Series, right: Series): void {
  const keys = left.items.map(([key]) => key);
  if (keys.length !== right.items.length || right.items.some(([key], i) => key !== keys[i]))
    throw new Error("two series with different members are combined");
}

function expected<T>(value: unknown, is: boolean, what: string): T {
  if (!is) throw new TypeError(`${what} is expected in a test`);
  return value as T;
}

const number = (value: unknown) => expected<Fraction>(value, value instanceof Fraction, "a number");
const series = (value: unknown) => expected<Series>(value, value instanceof Series, "a series");
const truth = (value: unknown) =>
  expected<Truth>(value, typeof value === "boolean" || value instanceof Missing, "true or false");
