/** Deciding a rule again, from rows of the registers. */

import { type Role, evaluate } from "./evaluation";
import { type Criterion, type Evidence, type Rule, named, readValue } from "./evidence";
import { type Expression, comparedWith, parse, subject } from "./expression";
import { Fraction, mean } from "./fraction";
import type { Interval, Intervals } from "./interval";
import { measure } from "./measure";
import { Missing, type Scalar, Series, type Truth, type Value, absent, all, present, together } from "./value";

interface CriterionReached {
  criterion: Criterion;
  value: Value | null;
  /** What it is compared with, where that is measured, too. */
  against: Value | null;
  holds: Truth;
}

export interface Outcome {
  verdict: string;
  /** Of a superseded prediction. */
  originalVerdict: string | null;
  evidence: string;
  holds: Truth;
  readings: Record<string, string>;
  criteria: CriterionReached[];
  estimate: Scalar | null;
  /** What other random numbers could turn, in words. */
  closeCalls: string[];
}

// As the recorded decision: a normal deviate lies further out about once in 370 times.
const CLOSE_ERRORS = Fraction.of(3);

export class Redecision {
  private readonly measured = new Map<string, Scalar | Series<Scalar>>();
  private readonly decided = new Map<string, Outcome>();

  constructor(private readonly evidence: Evidence, private readonly intervals: Intervals) {}

  /** Decide a rule of the page; those that it names are decided first. */
  decide(name: string): Outcome {
    const known = this.decided.get(name);
    if (known) return known;
    const rule = named(this.evidence.document.rules, name);
    const criteria = rule.criteria.map((criterion) => this.criterion(criterion));
    const of = (reading: string) => criteria.filter((c) => [null, reading || null].includes(c.criterion.reading));
    const reached = verdict(rule, of(rule.binding));
    const outcome: Outcome = {
      verdict: rule.superseded ? "superseded" : reached,
      originalVerdict: rule.superseded ? reached : null,
      evidence: this.evidenceOf(rule, this.intervals),
      holds: all(of(rule.binding).map(({ holds }) => holds)),
      readings: Object.fromEntries(Object.keys(rule.readings).map((reading) => [reading, verdict(rule, of(reading))])),
      criteria,
      estimate: rule.estimate ? this.mean(rule.estimate) : null,
      closeCalls: this.closeCalls(rule),
    };
    this.decided.set(name, outcome);
    return outcome;
  }

  private criterion(criterion: Criterion): CriterionReached {
    const expression = parse(criterion.test);
    const reached = (part: Expression) => evaluate(part, (role, name) => this.resolve(role, name, this.intervals));
    const holds = reached(expression);
    if (typeof holds !== "boolean" && !(holds instanceof Missing)) throw new Error(`no test: ${criterion.test}`);
    const [seen, other] = [subject(expression), comparedWith(expression)];
    return { criterion, value: seen && reached(seen), against: other && reached(other), holds };
  }

  private resolve(role: Role, name: string, intervals: Intervals): Value {
    if (role === "passes") return this.decide(name).holds;
    if (role === "value") return this.value(name);
    if (role === "p" || role === "adjusted")
      return readValue(named(this.evidence.document.tests, name)[role]) as Value;
    const interval = intervals.get(name);
    if (!interval) throw new Error(`there is no interval ${name}`);
    if (interval instanceof Missing) return interval;
    return role === "lower" ? interval.low : interval.high;
  }

  /** The value of an endpoint or a statistic. */
  value(name: string): Scalar | Series<Scalar> {
    let value = this.measured.get(name);
    if (value === undefined) {
      const statistic = this.evidence.document.statistics[name];
      value = statistic
        ? (evaluate(parse(statistic.formula), (_, part) => this.value(part)) as Scalar)
        : measure(name, named(this.evidence.document.endpoints, name), this.evidence.rows);
      this.measured.set(name, value);
    }
    return value;
  }

  /** Its mean, where it is a series. */
  mean(name: string): Scalar {
    const value = this.value(name);
    if (!(value instanceof Series)) return value;
    const members = present(value.values);
    return members instanceof Missing ? members : mean(members);
  }

  private evidenceOf(rule: Rule, intervals: Intervals): string {
    const interval = rule.interval ? intervals.get(rule.interval) : undefined;
    if (!interval || interval instanceof Missing) return "not_estimated";
    const includes = (number: Fraction) => interval.low.compare(number) <= 0 && number.compare(interval.high) <= 0;
    if (includes(Fraction.of(0))) return "includes_zero";
    return rule.threshold !== null && includes(Fraction.read(rule.threshold)) ? "includes_threshold" : "excludes_zero";
  }

  /** What would be otherwise if an end of an interval lay three of its Monte Carlo errors elsewhere. */
  private closeCalls(rule: Rule): string[] {
    const calls: string[] = [];
    for (const criterion of rule.criteria) {
      const expression = parse(criterion.test);
      const holds = (intervals: Intervals) =>
        evaluate(expression, (role, name) => this.resolve(role, name, intervals)) === true;
      for (const name of criterion.names) {
        const turned = moved(name, this.intervals).filter(([, other]) => holds(other) !== holds(this.intervals));
        calls.push(...turned.map(([end]) => `${criterion.id} could turn with ${end}`));
        if (Object.hasOwn(this.evidence.document.rules, name))
          calls.push(...this.decide(name).closeCalls.map((call) => `${name}: ${call}`));
      }
    }
    for (const [end, other] of moved(rule.interval, this.intervals))
      if (this.evidenceOf(rule, other) !== this.evidenceOf(rule, this.intervals))
        calls.push(`the evidence could turn with ${end}`);
    return [...new Set(calls)];
  }
}

/** The intervals with one end of one of them moved each way, and which end; none where its ends are exact. */
function moved(name: string, intervals: Intervals): [string, Intervals][] {
  const interval = intervals.get(name);
  if (!interval || interval instanceof Missing || !interval.errors) return [];
  const [low, high] = interval.errors.map((error) => error.times(CLOSE_ERRORS)) as [Fraction, Fraction];
  const described = (end: string, value: Fraction, error: Fraction) =>
    `the ${end} end of ${name}, ${value.toNumber().toFixed(5)} with a Monte Carlo error of ${error.toNumber().toFixed(5)}`;
  const with_ = (change: Partial<Interval>) => new Map([...intervals, [name, { ...interval, ...change }]]);
  const lower = described("lower", interval.low, interval.errors[0]);
  const upper = described("upper", interval.high, interval.errors[1]);
  return [
    [lower, with_({ low: interval.low.minus(low) })],
    [lower, with_({ low: interval.low.plus(low) })],
    [upper, with_({ high: interval.high.minus(high) })],
    [upper, with_({ high: interval.high.plus(high) })],
  ];
}

/**
 * Criteria to a verdict. Hypotheses, gates and joint predictions are Kleene conjunctions. Another prediction is
 * partially met as soon as one part is met and one is missed; with a part unknown and no such split it has none.
 */
function verdict(rule: Rule, criteria: readonly CriterionReached[]): string {
  const truths = criteria.map(({ holds }) => holds);
  if (!rule.joint && truths.includes(true) && truths.includes(false)) return "partially_met";
  const missing = absent(truths);
  const whole = rule.joint || !missing.length ? all(truths) : together(missing);
  if (whole instanceof Missing) return whole.notRun ? "not_run" : "not_evaluable";
  const words = { hypothesis: ["pass", "miss"], prediction: ["met", "missed"], gate: [rule.open, rule.shut] };
  return words[rule.kind][whole ? 0 : 1] as string;
}
