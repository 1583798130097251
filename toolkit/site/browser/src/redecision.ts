/** Deciding a rule again, from rows of the registers, and what was reached held against what is recorded. */

import { evaluate } from "./evaluation";
import { type Criterion, type Evidence, type Rule, named, readValue, writeValue } from "./evidence";
import { type Expression, compared, namesIn, parse } from "./expression";
import { type Intervals, agree, includes } from "./interval";
import { measure } from "./measure";
import { Fraction, Missing, type Scalar, Series, type Truth, type Value, ZERO } from "./value";
import { absent, all, exact, fixed, mean, present, together } from "./value";

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

export interface Disagreement {
  text: string;
  /** Whether other random numbers explain it: it is among the close calls. */
  byChance: boolean;
}

// As the recorded decision: a normal deviate lies further out about once in 370 times.
const CLOSE_ERRORS = 3;

export class Redecision {
  private readonly measured = new Map<string, Scalar | Series>();
  private readonly decided = new Map<string, Outcome>();

  constructor(private readonly evidence: Evidence, readonly intervals: Intervals) {}

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
      evidence: evidenceOf(rule, this.intervals),
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
    const holds = this.reached(expression);
    if (typeof holds !== "boolean" && !(holds instanceof Missing)) throw new Error(`no test: ${criterion.test}`);
    const [seen, other] = compared(expression);
    const against = other !== undefined && namesIn(other).length ? this.reached(other) : null;
    return { criterion, value: seen === undefined ? null : this.reached(seen), against, holds };
  }

  private reached(expression: Expression, intervals = this.intervals): Value {
    return evaluate(expression, (role, name) => {
      if (role === "passes") return this.decide(name).holds;
      if (role === "value") return this.value(name);
      if (role === "p" || role === "adjusted")
        return readValue(named(this.evidence.document.tests, name)[role]) as Value;
      const interval = intervals.get(name);
      if (!interval) throw new Error(`there is no interval ${name}`);
      return interval instanceof Missing ? interval : interval[role === "lower" ? "low" : "high"];
    });
  }

  /** The value of an endpoint or a statistic. */
  value(name: string): Scalar | Series {
    const { statistics, endpoints } = this.evidence.document;
    const formula = statistics[name]?.formula;
    const value =
      this.measured.get(name) ??
      (formula
        ? (evaluate(parse(formula), (_, part) => this.value(part)) as Scalar)
        : measure(name, named(endpoints, name), this.evidence.rows));
    this.measured.set(name, value);
    return value;
  }

  /** Its mean, where it is a series. */
  mean(name: string): Scalar {
    const value = this.value(name);
    if (!(value instanceof Series)) return value;
    const members = present(value.values as Scalar[]);
    return members instanceof Missing ? members : mean(members);
  }

  /** What would be otherwise if an end of an interval lay three of its Monte Carlo errors elsewhere. */
  private closeCalls(rule: Rule): string[] {
    const { rules } = this.evidence.document;
    const turnedBy = (name: string, of: (intervals: Intervals) => unknown) =>
      moved(name, this.intervals).flatMap(([end, other]) => (of(other) === of(this.intervals) ? [] : [end]));
    const calls = rule.criteria.flatMap(({ id, test, names }) => {
      const holds = (intervals: Intervals) => this.reached(parse(test), intervals) === true;
      return names.flatMap((name) => [
        ...turnedBy(name, holds).map((end) => `${id} could turn with ${end}`),
        ...(Object.hasOwn(rules, name) ? this.decide(name).closeCalls : []).map((call) => `${name}: ${call}`),
      ]);
    });
    const evidence = turnedBy(rule.interval, (intervals) => evidenceOf(rule, intervals));
    return [...new Set([...calls, ...evidence.map((end) => `the evidence could turn with ${end}`)])];
  }

  /** Where a rule's decision here differs from the recorded one; nothing where they agree. */
  disagreements(rule: string): Disagreement[] {
    const [outcome, recorded] = [this.decide(rule), named(this.evidence.document.recorded, rule)];
    const { intervals } = this.evidence.document;
    const calls = [...outcome.closeCalls, ...recorded.close_calls];
    const found: Disagreement[] = [];
    const hold = (what: string, here: unknown, there: unknown, byChance: boolean) => {
      if (here !== there) found.push({ text: `${what}: ${here} here, ${there} recorded`, byChance });
    };
    recorded.criteria.forEach((there, i) => {
      const here = outcome.criteria[i];
      if (!here) return;
      const starts = [`${there.id} `, ...here.criterion.names.map((name) => `${name}: `)];
      const isClose = calls.some((call) => starts.some((start) => call.startsWith(start)));
      hold(`Criterion ${there.id}`, truthWord(here.holds), truthWord(readValue(there.holds)), isClose);
      // Where a test reads an interval, its numbers differ with the seed.
      if (!here.criterion.names.some((name) => Object.hasOwn(intervals, name)))
        hold(`The value of ${there.id}`, text(here.value), text(readValue(there.value)), false);
    });
    // A verdict is turned by chance where each criterion that was turned is, and one was.
    const turned = found.length > 0 && found.every(({ byChance }) => byChance);
    hold("The verdict", outcome.verdict, recorded.verdict, turned);
    hold("The original verdict", outcome.originalVerdict, recorded.original_verdict, turned);
    for (const [reading, reached] of Object.entries(recorded.readings))
      hold(`The reading ${reading}`, outcome.readings[reading], reached, turned);
    const isClose = calls.some((call) => call.startsWith("the evidence could turn"));
    hold("The evidence", outcome.evidence, recorded.evidence, isClose);
    hold("The estimate", text(outcome.estimate), text(readValue(recorded.estimate)), false);
    for (const [name, spec] of Object.entries(intervals)) {
      const here = this.intervals.get(name);
      const explained = "lies further from the recorded one than its Monte Carlo errors explain";
      if (here && !(here instanceof Missing) && !agree(here, spec))
        found.push({ text: `The interval ${name} ${explained}`, byChance: false });
    }
    return found;
  }
}

function evidenceOf(rule: Rule, intervals: Intervals): string {
  const interval = intervals.get(rule.interval);
  if (!interval || interval instanceof Missing) return "not_estimated";
  if (includes(interval, ZERO)) return "includes_zero";
  const isBeyond = rule.threshold === null || !includes(interval, exact(rule.threshold));
  return isBeyond ? "excludes_zero" : "includes_threshold";
}

/** The intervals with one end of one of them moved each way, and which end; none where its ends are exact. */
function moved(name: string, intervals: Intervals): [string, Intervals][] {
  const interval = intervals.get(name);
  if (!interval || interval instanceof Missing || !interval.errors) return [];
  return interval.errors.flatMap((error, upper) => {
    const side = upper ? "high" : "low";
    const end = `the ${upper ? "upper" : "lower"} end of ${name}, ${fixed(interval[side])}`;
    const other = (by: number) => new Map([...intervals, [name, { ...interval, [side]: interval[side].add(error.mul(by)) }]]);
    const words = `${end} with a Monte Carlo error of ${fixed(error)}`;
    return [-CLOSE_ERRORS, CLOSE_ERRORS].map((by): [string, Intervals] => [words, other(by)]);
  });
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

/** A truth, in words. */
export function truthWord(truth: Value | null | undefined): string {
  if (truth instanceof Missing) return "unknown";
  return truth === true ? "holds" : truth === false ? "does not hold" : "–";
}

function text(value: Value | null): string {
  if (value instanceof Fraction) return value.toFraction();
  if (value instanceof Missing) return "unknown"; // why, each says in its own words
  return JSON.stringify(writeValue(value));
}
