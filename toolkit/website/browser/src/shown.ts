/** What a page shows, held against what was reached: every number, verdict and word that has a mark. */

import { truthWord } from "./agreement";
import type { Book } from "./book";
import type { Document, Evidence } from "./evidence";
import { Fraction } from "./fraction";
import type { Intervals } from "./interval";
import { spelt } from "./page";
import { rowsRead } from "./reading";
import type { Redecision } from "./redecision";
import { Mismatch, hold } from "./registration";
import { intervalSays } from "./says";
import { Missing, Series, type Value } from "./value";

const NONE = "–";

/** Hold every marked number and verdict of a page against a decision; returns how many there were. */
export function holdShown(
  page: ParentNode,
  { document, rows }: Evidence,
  decided: Redecision,
  intervals: Intervals,
): number {
  const outcome = decided.decide(document.rule);
  let count = 0;
  const each = (selector: string, compare: (shown: string, element: HTMLElement) => void, isNeeded = false) => {
    const marked = page.querySelectorAll<HTMLElement>(selector);
    if (isNeeded && !marked.length) throw new Mismatch("What the page shows", selector, "no such element");
    marked.forEach((element) => compare(said(element), element));
    count += marked.length;
  };
  const word = (what: string, name: string | null, shown: string) => hold(what, spelt(name ?? ""), shown);
  each('[data-shown="verdict"]', (shown) => word("The verdict shown", outcome.verdict, shown), true);
  each('[data-shown="original"]', (shown) => word("The original verdict shown", outcome.originalVerdict, shown));
  each('[data-shown="evidence"]', (shown) => {
    const rule = document.rules[document.rule];
    const interval = rule && intervals.get(rule.interval);
    const says = !interval || interval instanceof Missing ? "" : intervalSays(rule, interval, document.statistics[rule.estimate]?.unit ?? "");
    hold("What the interval shows", says, shown);
  });
  each('[data-shown="estimate"]', (shown) => number("The estimate shown", outcome.estimate, shown));
  each('[data-shown="interval"]', (shown) => ends(document, intervals, shown));
  each("[data-shown=reading]", (shown, { dataset: { name = "" } }) =>
    word(`The reading ${name} shown`, outcome.readings[name] ?? null, shown),
  );
  for (const one of outcome.criteria) {
    const { id } = one.criterion;
    const within = `[data-criterion="${id}"] `;
    each(`${within}[data-shown=holds]`, (shown) => hold(`Whether ${id} holds, as shown`, truthWord(one.holds), shown), true);
    each(`${within}[data-shown=value]`, (_, element) => series(`The value of ${id} shown`, one.value, element));
    each(`${within}[data-shown=against]`, (_, element) => series(`What ${id} is held against, as shown`, one.against, element));
    each(`${within}[data-rule]`, (shown, { dataset: { rule = "" } }) =>
      word(`The verdict of ${rule} shown`, decided.decide(rule).verdict, shown),
    );
  }
  each("[data-seed]", (shown, { dataset: { endpoint = "", seed = "" } }) => {
    const value = decided.value(endpoint);
    const member = value instanceof Series ? value.items.find(([key]) => key === seed)?.[1] : undefined;
    number(`${endpoint} of seed ${seed} shown`, member ?? null, shown);
  });
  each("[data-mean]", (shown, { dataset: { mean = "" } }) => number(`The mean of ${mean} shown`, decided.mean(mean), shown));
  each("[data-rows]", (shown, { dataset: { rows: name = "" } }) => {
    const endpoint = document.endpoints[name];
    hold(`Rows of ${name} shown`, endpoint ? rowsRead(name, endpoint, rows).length : 0, Number(shown.replaceAll(",", "")));
  });
  each("[data-sum]", (shown, { dataset: { sum = "", endpoint: name = "" } }) => {
    const endpoint = document.endpoints[name];
    const read = endpoint ? rowsRead(name, endpoint, rows) : [];
    const total = read.reduce((all, row) => all.plus(Fraction.stored((row[sum] ?? 0) as number)), Fraction.of(0));
    number(`${sum} of ${name} shown`, total, shown);
  });
  return count;
}

/** Hold the marked words of a page against the registered ones; returns how many there were. */
export function holdWords(page: ParentNode, document: Document, book: Book): number {
  const rule = document.rules[document.rule];
  const texts: [string, string, string | undefined][] = [["The rule's text", '[data-shown="text"]', book.texts[document.rule]]];
  for (const { id, test, text } of rule?.criteria ?? [])
    texts.push(
      [`The test ${id}`, `[data-criterion="${id}"] [data-shown=test]`, test],
      [`The words of ${id}`, `[data-criterion="${id}"] [data-shown=words]`, text],
    );
  for (const [name, text] of Object.entries(rule?.readings ?? {}))
    texts.push([`The reading ${name}`, `[data-reading="${name}"]`, text]);
  for (const [name, { formula }] of Object.entries(document.statistics))
    texts.push([`The formula of ${name}`, `[data-statistic="${name}"]`, formula]);
  let count = 0;
  for (const [what, selector, expected] of texts)
    for (const element of page.querySelectorAll<HTMLElement>(selector)) {
      hold(what, spaced(expected ?? ""), said(element));
      count += 1;
    }
  return count;
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
    if (!isPrinted(value, part)) throw new Mismatch(what, value.toNumber(), shown);
}

/** Whether a text is what a number is printed as: to fixed decimals, or to about six digits without zeros behind them. */
function isPrinted(value: Fraction, text: string): boolean {
  const plain = text.replace(/^\+/, "").replaceAll(",", "").replace("−", "-");
  let found: Fraction;
  try {
    found = Fraction.read(plain);
  } catch {
    return false;
  }
  if (plain.includes("/")) return found.compare(value) === 0;
  const apart = found.minus(value).abs();
  const decimals = /\.(\d+)$/.exec(plain)?.[1]?.length ?? 0;
  if (decimals >= 4 && apart.times(Fraction.of(2n * 10n ** BigInt(decimals))).compare(Fraction.of(1)) <= 0) return true;
  const [size, one] = [value.abs(), Fraction.of(1)];
  return apart.times(Fraction.of(200_000)).compare(size.compare(one) < 0 ? one : size) <= 0;
}

function ends(document: Document, intervals: Intervals, shown: string): void {
  const name = document.rules[document.rule]?.interval ?? "";
  const interval = intervals.get(name);
  const parts = /([\d.]+)% \[(\S+), (\S+)\]/.exec(shown);
  if (!parts || !interval || interval instanceof Missing) throw new Mismatch("The interval shown", name, shown);
  const level = Fraction.read(document.intervals[name]?.level ?? "0").times(Fraction.of(100));
  number("The level shown", level, parts[1] as string);
  number("The lower end shown", interval.low, parts[2] as string);
  number("The upper end shown", interval.high, parts[3] as string);
}
