/** Evaluating an expression: exact numbers, Kleene truth, nothing missing ever counted as zero. */

import { type Expression, expanded } from "./expression";
import { Fraction, mean, sum } from "./fraction";
import { type Member, Missing, type Scalar, Series, type Truth, type Value } from "./value";
import { absent, all, any, majority, not, present, together } from "./value";

export type Role = "value" | "lower" | "upper" | "p" | "adjusted" | "passes";

const NAMED: readonly string[] = ["lower", "upper", "p", "adjusted", "passes"] satisfies Role[];
type Resolve = (role: Role, name: string) => Value;

// Far beyond any endpoint, and still a double.
const LARGEST = Fraction.of(10n ** 100n);

const COMPARE: Record<string, (order: number) => boolean> = {
  ">=": (order) => order >= 0,
  "<=": (order) => order <= 0,
  ">": (order) => order > 0,
  "<": (order) => order < 0,
  "=": (order) => order === 0,
};

const CALCULATE: Record<string, (a: Fraction, b: Fraction) => Fraction> = {
  "+": (a, b) => a.plus(b),
  "-": (a, b) => a.minus(b),
  "*": (a, b) => a.times(b),
  "/": (a, b) => a.over(b),
};

const REDUCE: Record<string, (values: Fraction[]) => Scalar> = {
  mean,
  min: (values) => values.reduce((a, b) => (b.compare(a) < 0 ? b : a)),
  max: (values) => values.reduce((a, b) => (b.compare(a) > 0 ? b : a)),
  first: (values) => values[0] as Fraction,
  last: (values) => values[values.length - 1] as Fraction,
  variance,
};

export function evaluate(expression: Expression, resolve: Resolve): Value {
  switch (expression.kind) {
    case "number":
      return expression.value;
    case "name":
      return resolve("value", expression.name);
    case "binary":
      return binary(expression.operator, evaluate(expression.left, resolve), evaluate(expression.right, resolve));
    case "call": {
      const { operator, inside } = expression;
      const [first] = inside;
      if (NAMED.includes(operator) && inside.length === 1 && first?.kind === "name")
        return resolve(operator as Role, first.name);
      if (operator === "equivalent" || operator === "non_inferior") return evaluate(expanded(expression), resolve);
      return call(operator, inside.map((part) => evaluate(part, resolve)));
    }
  }
}

function call(operator: string, values: Value[]): Value {
  const [value, second, third] = values;
  const reduce = REDUCE[operator];
  if (reduce) {
    const members = present(numbers(value).values);
    if (members instanceof Missing) return members;
    return members.length ? inBounds(reduce(members)) : empty(operator);
  }
  switch (operator) {
    case "all":
      return all(values.map(truth));
    case "any":
      return any(values.map(truth));
    case "not":
      return not(truth(value));
    case "each":
    case "majority": {
      const held = truths(value);
      if (!held.length) return empty(operator);
      return operator === "each" ? all(held) : majority(held);
    }
    case "count": {
      const held = present(truths(value));
      if (held instanceof Missing) return held;
      return held.length ? Fraction.of(held.filter((one) => one).length) : empty(operator);
    }
    case "within":
      return bounded(value, second, third, (x, centre, margin) => x.minus(centre).abs().compare(margin) <= 0);
    case "between":
      return bounded(value, second, third, (x, low, high) => low.compare(x) <= 0 && x.compare(high) <= 0);
    case "decreasing": {
      const members = numbers(value).values;
      const falls = members.slice(1).map((after, i) => pair("<", after, members[i] as Scalar) as Truth);
      return falls.length ? all(falls) : empty(operator);
    }
    case "rest": {
      const series = numbers(value);
      return new Series(series.unit, series.items.slice(1));
    }
    case "abs":
      return eachNumber(value, (x) => x.abs());
    case "list":
      return new Series("place", values.map((one, i) => [`${i + 1}`, one as Scalar]));
    case "slope":
    case "rank_correlation":
      return ofPairs(operator, numbers(value), numbers(second));
    default:
      throw new SyntaxError(`the rule language has no operator ${operator}`);
  }
}

function bounded(
  value: Value | undefined,
  second: Value | undefined,
  third: Value | undefined,
  inside: (x: Fraction, a: Fraction, b: Fraction) => boolean,
): Value {
  const missing = absent([second, third]);
  if (missing.length) {
    const unknown = together(missing);
    return value instanceof Series ? new Series(value.unit, value.items.map(([k]) => [k, unknown])) : unknown;
  }
  const [a, b] = [number(second), number(third)];
  return eachNumber(value, (x) => inside(x, a, b));
}

function eachNumber(value: Value | undefined, change: (x: Fraction) => Fraction | boolean): Value {
  if (value instanceof Series) return value.map((member) => change(number(member)));
  return value instanceof Missing ? value : change(number(value));
}

function binary(operator: string, left: Value, right: Value): Value {
  if (left instanceof Series && right instanceof Series) {
    checkMembers(left, right);
    return new Series(left.unit, left.items.map(([key, a], i) => [key, pair(operator, a, right.values[i] as Member)]));
  }
  if (left instanceof Series)
    return new Series(left.unit, left.items.map(([key, a]) => [key, pair(operator, a, right as Member)]));
  if (right instanceof Series)
    return new Series(right.unit, right.items.map(([key, b]) => [key, pair(operator, left as Member, b)]));
  return pair(operator, left, right);
}

function pair(operator: string, left: Member, right: Member): Member {
  const missing = absent([left, right]);
  if (missing.length) return together(missing);
  const [a, b] = [number(left), number(right)];
  const compare = COMPARE[operator];
  if (compare) return compare(a.compare(b));
  if (operator === "/" && b.isZero) return new Missing(["a quotient over zero"]);
  const value = CALCULATE[operator]?.(a, b);
  if (!value) throw new SyntaxError(`the rule language has no ${operator}`);
  return inBounds(value);
}

function inBounds(value: Scalar): Scalar {
  if (value instanceof Missing || value.abs().compare(LARGEST) < 0) return value;
  return new Missing(["a number beyond all bounds"]);
}

/** The sample variance. */
function variance(values: Fraction[]): Scalar {
  if (values.length < 2) return new Missing(["variance of a single number"]);
  const apart = fromMean(values);
  return sum(apart.map((one) => one.times(one))).over(Fraction.of(values.length - 1));
}

function ofPairs(operator: string, first: Series<Scalar>, second: Series<Scalar>): Scalar {
  checkMembers(first, second);
  const members = present([...first.values, ...second.values]);
  if (members instanceof Missing) return members;
  const size = first.items.length;
  if (!size) return empty(operator);
  const [ones, others] = [members.slice(0, size), members.slice(size)];
  return inBounds(operator === "slope" ? slope(ones, others) : rankCorrelation(ones, others));
}

/** The slope of the least-squares line of y on x, with an intercept. */
function slope(y: Fraction[], x: Fraction[]): Scalar {
  const [down, across] = [fromMean(y), fromMean(x)];
  const spread = sum(across.map((one) => one.times(one)));
  if (spread.isZero) return new Missing(["a slope over a single place"]);
  return sum(across.map((one, i) => one.times(down[i] as Fraction))).over(spread);
}

/** Kendall's tau-a. */
function rankCorrelation(x: Fraction[], y: Fraction[]): Scalar {
  const pairs = (x.length * (x.length - 1)) / 2;
  if (!pairs) return new Missing(["rank correlation of a single pair"]);
  let agreeing = 0;
  for (let i = 0; i < x.length; i += 1)
    for (let j = 0; j < i; j += 1)
      agreeing += (x[i] as Fraction).compare(x[j] as Fraction) * (y[i] as Fraction).compare(y[j] as Fraction);
  return Fraction.of(agreeing, pairs);
}

function fromMean(values: Fraction[]): Fraction[] {
  const centre = mean(values);
  return values.map((value) => value.minus(centre));
}

function checkMembers(left: Series<Member>, right: Series<Member>): void {
  const keys = left.items.map(([key]) => key);
  const others = right.items.map(([key]) => key);
  if (keys.length !== others.length || keys.some((key, i) => key !== others[i]))
    throw new Error("two series with different members are combined");
}

function empty(operator: string): Missing {
  return new Missing([`${operator} of an empty series`]);
}

function number(value: unknown): Fraction {
  if (value instanceof Fraction) return value;
  throw new TypeError("a number is expected in a test");
}

function numbers(value: unknown): Series<Scalar> {
  if (value instanceof Series) return value as Series<Scalar>;
  throw new TypeError("a series is expected in a test");
}

function truth(value: unknown): Truth {
  if (typeof value === "boolean" || value instanceof Missing) return value;
  throw new TypeError("true or false is expected in a test");
}

function truths(value: unknown): Truth[] {
  if (value instanceof Series) return value.values.map(truth);
  throw new TypeError("a series of true or false is expected in a test");
}
