/** What a page shows, held against what was reached: every number, verdict and word that has a mark. */

import { type Document, type Evidence, type Rule, named } from "./evidence";
import { type Expression, called, expanded, parse } from "./expression";
import { type Interval, type Intervals, includes } from "./interval";
import { rowsRead } from "./measure";
import { spelt } from "./page";
import { type Redecision, truthWord } from "./redecision";
import { Mismatch, hold } from "./registration";
import { Fraction, Missing, Series, type Value, ZERO, exact, sum } from "./value";

const NONE = "–";

type Compare = (shown: string, data: DOMStringMap, element: HTMLElement) => void;

/** Hold every marked number and verdict of a page against a decision; returns how many there were. */
export function holdShown(page: ParentNode, { document, rows }: Evidence, decided: Redecision): number {
  const { intervals } = decided;
  const outcome = decided.decide(document.rule);
  let count = 0;
  const each = (selector: string, compare: Compare, isNeeded = false) => {
    const marked = page.querySelectorAll<HTMLElement>(selector);
    if (isNeeded && !marked.length) throw new Mismatch("What the page shows", selector, "no such element");
    marked.forEach((element) => compare(said(element), element.dataset, element));
    count += marked.length;
  };
  const word = (what: string, name: string | null | undefined, shown: string) => hold(what, spelt(name ?? ""), shown);
  each('[data-shown="verdict"]', (shown) => word("The verdict shown", outcome.verdict, shown), true);
  each('[data-shown="original"]', (shown) => word("The original verdict shown", outcome.originalVerdict, shown));
  each('[data-shown="evidence"]', (shown) => {
    const rule = named(document.rules, document.rule);
    const interval = intervals.get(rule.interval);
    const unit = document.statistics[rule.estimate]?.unit;
    hold("What the interval shows", !interval || interval instanceof Missing ? "" : intervalSays(rule, interval, unit), shown);
  });
  each('[data-shown="estimate"]', (shown) => number("The estimate shown", outcome.estimate, shown));
  each('[data-shown="interval"]', (shown) => ends(document, intervals, shown));
  each("[data-shown=reading]", (shown, { name = "" }) => word(`The reading ${name} shown`, outcome.readings[name], shown));
  for (const { criterion: { id }, holds, value, against } of outcome.criteria) {
    const within = `[data-criterion="${id}"] `;
    each(`${within}[data-shown=holds]`, (shown) => hold(`Whether ${id} holds, as shown`, truthWord(holds), shown), true);
    each(`${within}[data-shown=value]`, (_, __, element) => series(`The value of ${id} shown`, value, element));
    each(`${within}[data-shown=against]`, (_, __, element) => series(`What ${id} is held against, as shown`, against, element));
    each(`${within}[data-rule]`, (shown, { rule = "" }) =>
      word(`The verdict of ${rule} shown`, decided.decide(rule).verdict, shown),
    );
  }
  each("[data-seed]", (shown, { endpoint = "", seed = "" }) => {
    const value = decided.value(endpoint);
    const member = value instanceof Series ? value.items.find(([key]) => key === seed)?.[1] : undefined;
    number(`${endpoint} of seed ${seed} shown`, member ?? null, shown);
  });
  each("[data-mean]", (shown, { mean = "" }) => number(`The mean of ${mean} shown`, decided.mean(mean), shown));
  const read = (name: string) => {
    const endpoint = document.endpoints[name];
    return endpoint ? rowsRead(name, endpoint, rows) : [];
  };
  each("[data-rows]", (shown, { rows: name = "" }) =>
    hold(`Rows of ${name} shown`, read(name).length, Number(shown.replaceAll(",", ""))),
  );
  each("[data-sum]", (shown, { sum: column = "", endpoint: name = "" }) => {
    number(`${column} of ${name} shown`, sum(read(name).map((row) => exact((row[column] ?? 0) as number))), shown);
  });
  return count;
}

/** Hold the marked words of a page against the registered ones; returns how many there were. */
export function holdWords(page: ParentNode, document: Document): number {
  const { text, criteria, readings } = named(document.rules, document.rule);
  const texts = [["The rule's text", '[data-shown="text"]', text]];
  for (const { id, test, text } of criteria)
    texts.push(
      [`The test ${id}`, `[data-criterion="${id}"] [data-shown=test]`, test],
      [`The words of ${id}`, `[data-criterion="${id}"] [data-shown=words]`, text],
    );
  for (const [name, text] of Object.entries(readings)) texts.push([`The reading ${name}`, `[data-reading="${name}"]`, text]);
  for (const [name, { formula }] of Object.entries(document.statistics))
    texts.push([`The formula of ${name}`, `[data-statistic="${name}"]`, formula]);
  const marked = texts.flatMap(([what, selector, expected]) =>
    [...page.querySelectorAll(selector as string)].map((element) => hold(what as string, spaced(expected ?? ""), said(element))),
  );
  return marked.length;
}

/** The text of an element, however its lines are broken. */
function said(element: Element): string {
  return spaced(element.textContent ?? "");
}

function spaced(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** Hold a number or, member by member, a series. */
function series(what: string, value: Value | null, element: HTMLElement): void {
  if (!(value instanceof Series)) return number(what, value, said(element));
  const members = [...element.children].filter((child) => child.classList.contains("member"));
  hold(`${what}, members`, value.items.length, members.length);
  value.items.forEach(([key, member], i) => {
    const name = said(members[i]?.querySelector(".key") ?? element);
    hold(`${what}, member ${i + 1}`, value.unit === "seed" ? `seed ${key}` : key, name);
    number(`${what}, ${name}`, member, said(members[i] ?? element).slice(name.length).trim());
  });
}

/** Hold a number as it is printed: exactly, `71/1920 = 0.0369792`, or rounded to the digits that are there. */
function number(what: string, value: Value | null, shown: string): void {
  if (!(value instanceof Fraction)) return hold(what, NONE, shown);
  for (const part of shown.split(" = "))
    if (!isPrinted(value, part)) throw new Mismatch(what, value.valueOf(), shown);
}

/** Whether a text is what a number is printed as: to fixed decimals, or to about six digits without zeros behind them. */
function isPrinted(value: Fraction, text: string): boolean {
  const plain = text.replace(/^\+/, "").replaceAll(",", "").replace("−", "-");
  let found: Fraction;
  try {
    found = exact(plain);
  } catch {
    return false;
  }
  if (plain.includes("/")) return found.equals(value);
  const apart = found.sub(value).abs();
  const decimals = /\.(\d+)$/.exec(plain)?.[1]?.length ?? 0;
  if (decimals >= 4 && apart.mul(2n * 10n ** BigInt(decimals)).lte(1)) return true;
  const size = value.abs();
  return apart.mul(200_000).lte(size.lt(1) ? 1 : size);
}

function ends(document: Document, intervals: Intervals, shown: string): void {
  const { interval: name } = named(document.rules, document.rule);
  const interval = intervals.get(name);
  const parts = /([\d.]+)% \[(\S+), (\S+)\]/.exec(shown);
  if (!parts || !interval || interval instanceof Missing) throw new Mismatch("The interval shown", name, shown);
  number("The level shown", exact(document.intervals[name]?.level ?? 0).mul(100), parts[1] as string);
  number("The lower end shown", interval.low, parts[2] as string);
  number("The upper end shown", interval.high, parts[3] as string);
}

interface Held {
  end: "lower" | "upper";
  operator: string;
  bound: Fraction;
}

const FLIPPED: Record<string, string> = { ">=": "<=", "<=": ">=", ">": "<", "<": ">" };
const REGION: Record<string, string> = { ">": "above", ">=": "at or above", "<": "below", "<=": "at or below" };
const plain = (value: Fraction) => (value.equals(0) ? "zero" : String(value.valueOf()));

/** Whether it is inside of what binding tests ask; where none does, whether it includes zero or the threshold. */
function intervalSays(rule: Rule, interval: Interval, unit?: string): string {
  const held = bounds(rule);
  if (held.length) {
    const inside = held.every(({ end, operator, bound }) => {
      const side = (end === "lower" ? interval.low : interval.high).compare(bound);
      return (side === 0 && operator.endsWith("=")) || (operator.startsWith(">") ? side > 0 : side < 0);
    });
    return `${inside ? "" : "not "}${region(held)}`;
  }
  const threshold = rule.threshold === null ? ZERO : exact(rule.threshold);
  const none = unit === "ratio" ? new Fraction(1) : ZERO;
  const named = includes(interval, none) ? [plain(none)] : [];
  if (!threshold.equals(0) && includes(interval, threshold)) named.push(`the threshold ${plain(threshold)}`);
  return named.length ? `includes ${named.join(" and ")}` : `excludes ${plain(none)}`;
}

/** How binding criteria hold the interval's ends against numbers; nothing where these make no region. */
function bounds(rule: Rule): Held[] {
  const binding = rule.criteria.filter(({ reading }) => reading === null || reading === rule.binding);
  const found = binding.flatMap(({ test }) => heldIn(parse(test), rule.interval));
  const below = found.filter(({ end, operator }) => end === "lower" && operator.startsWith(">"));
  const above = found.filter(({ end, operator }) => end === "upper" && operator.startsWith("<"));
  const [low, high] = [below[0]?.bound, above[0]?.bound];
  const isRegion = below.length <= 1 && above.length <= 1 && below.length + above.length === found.length;
  return !isRegion || (low && high && low.gte(high)) ? [] : found;
}

function region(held: readonly Held[]): string {
  const [low, high] = held.map(({ bound }) => bound).sort((a, b) => a.compare(b)) as [Fraction, Fraction?];
  if (!high) return `${REGION[held[0]?.operator ?? ""]} ${plain(low)}`;
  return low.add(high).equals(0) ? `inside ±${plain(high)}` : `inside ${plain(low)} to ${plain(high)}`;
}

/** Every comparison of the interval's ends with a number that has to hold. */
function heldIn(expression: Expression, interval: string): Held[] {
  const { operator = "", inside = [] } = called(expression);
  if (operator === "all") return inside.flatMap((part) => heldIn(part, interval));
  if (operator === "equivalent" || operator === "non_inferior") return heldIn(expanded({ operator, inside }), interval);
  const [left, right] = inside;
  const flipped = FLIPPED[operator];
  if (!flipped || left === undefined || right === undefined) return [];
  return ([[left, right, operator], [right, left, flipped]] as const).flatMap(([side, other, sign]) => {
    const bound = constant(other);
    const { operator: end, inside: [named] = [] } = called(side);
    return bound && named === interval && (end === "lower" || end === "upper") ? [{ end, operator: sign, bound }] : [];
  });
}

function constant(expression: Expression): Fraction | null {
  if (expression instanceof Fraction) return expression;
  const { operator, inside: [left, right] = [] } = called(expression);
  return operator === "-" && left instanceof Fraction && right instanceof Fraction ? left.sub(right) : null;
}
