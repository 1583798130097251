/**
 * From the text of a test to its expression.
 *
 *   test     = sum [ comparison sum ]
 *   sum      = product { ("+" | "-") product }
 *   product  = atom { ("*" | "/") atom }
 *   atom     = number | name | operator "(" test { "," test } ")" | "(" test ")" | "-" atom
 */

import { Fraction, ZERO } from "./fraction";

export type Expression =
  | { kind: "number"; value: Fraction }
  | { kind: "name"; name: string }
  | { kind: "call"; operator: string; inside: Expression[] }
  | { kind: "binary"; operator: string; left: Expression; right: Expression };

const COMPARISONS = [">=", "<=", ">", "<", "="];
const LONGEST = 2000;
const MOST_TOKENS = 200;
const DEEPEST = 40;
const TOKEN = /\s*(?:(\d+(?:\.\d+)?)|([A-Za-z_]\w*)|(>=|<=|[><=+\-*/(),]))/y;

interface Token {
  kind: "number" | "name" | "symbol";
  text: string;
}

/** Parse a test; throws a SyntaxError at what the language does not have. */
export function parse(text: string): Expression {
  const found = text.length > LONGEST ? [] : tokens(text);
  if (text.length > LONGEST || found.length > MOST_TOKENS) throw new SyntaxError("a test is too long");
  const parser = new Parser(found, text);
  const expression = parser.test(0);
  parser.end();
  return expression;
}

/** What a comparison of an interval with a margin stands for: its ends held against numbers. */
export function expanded({ operator, inside }: Extract<Expression, { kind: "call" }>): Expression {
  const [interval, margin] = inside as [Expression, Expression];
  const end = (name: string): Expression => ({ kind: "call", operator: name, inside: [interval] });
  const below: Expression = { kind: "binary", operator: "-", left: { kind: "number", value: ZERO }, right: margin };
  const low: Expression = { kind: "binary", operator: ">=", left: end("lower"), right: below };
  const high: Expression = { kind: "binary", operator: "<=", left: end("upper"), right: margin };
  return operator === "equivalent" ? { kind: "call", operator: "all", inside: [low, high] } : low;
}

/** The part of a test whose number a reader wants to see, or null for a test of tests. */
export function subject(expression: Expression): Expression | null {
  if (expression.kind === "binary") return COMPARISONS.includes(expression.operator) ? expression.left : null;
  if (expression.kind !== "call") return null;
  if (expression.operator === "non_inferior") return subject(expanded(expression));
  const [first] = expression.inside;
  if (!first) return null;
  if (["each", "majority", "not"].includes(expression.operator)) return subject(first);
  return ["within", "between", "decreasing"].includes(expression.operator) ? first : null;
}

/** What the subject of a test is compared with, where that is measured, too, and no number as written. */
export function comparedWith(expression: Expression): Expression | null {
  if (expression.kind === "call" && ["each", "majority", "not"].includes(expression.operator))
    return expression.inside[0] ? comparedWith(expression.inside[0]) : null;
  if (expression.kind !== "binary" || !COMPARISONS.includes(expression.operator)) return null;
  return namesIn(expression.right).length ? expression.right : null;
}

/** Every name that an expression mentions, in order. */
export function namesIn(expression: Expression): string[] {
  if (expression.kind === "name") return [expression.name];
  if (expression.kind === "binary") return [...namesIn(expression.left), ...namesIn(expression.right)];
  return expression.kind === "call" ? expression.inside.flatMap(namesIn) : [];
}

function tokens(text: string): Token[] {
  const found: Token[] = [];
  const whole = text.trimEnd();
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < whole.length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(whole);
    if (!match) throw new SyntaxError(`a character that the language does not know, at ${at} of ${text}`);
    const [, number, name, symbol] = match;
    if (number !== undefined) found.push({ kind: "number", text: number });
    else if (name !== undefined) found.push({ kind: "name", text: name });
    else found.push({ kind: "symbol", text: symbol ?? "" });
  }
  return found;
}

class Parser {
  private next = 0;

  constructor(private readonly tokens: Token[], private readonly text: string) {}

  test(depth: number): Expression {
    const left = this.sum(depth);
    const operator = this.symbol(COMPARISONS);
    if (!operator) return left;
    const right = this.sum(depth);
    if (this.symbol(COMPARISONS)) throw this.unexpected("no second comparison");
    return { kind: "binary", operator, left, right };
  }

  end(): void {
    if (this.next < this.tokens.length) throw this.unexpected("the end of the test");
  }

  private sum(depth: number): Expression {
    let left = this.product(depth);
    for (let operator; (operator = this.symbol(["+", "-"])); )
      left = { kind: "binary", operator, left, right: this.product(depth) };
    return left;
  }

  private product(depth: number): Expression {
    let left = this.atom(depth);
    for (let operator; (operator = this.symbol(["*", "/"])); )
      left = { kind: "binary", operator, left, right: this.atom(depth) };
    return left;
  }

  private atom(depth: number): Expression {
    if (depth > DEEPEST) throw this.unexpected(`a depth of ${DEEPEST} at most`);
    if (this.symbol(["-"])) {
      const left: Expression = { kind: "number", value: ZERO };
      return { kind: "binary", operator: "-", left, right: this.atom(depth + 1) };
    }
    if (this.symbol(["("])) {
      const inside = this.test(depth + 1);
      this.expect(")");
      return inside;
    }
    const token = this.tokens[this.next];
    if (!token || token.kind === "symbol") throw this.unexpected("a number, a name or an operator");
    this.next += 1;
    if (token.kind === "number") return { kind: "number", value: Fraction.read(token.text) };
    if (!this.symbol(["("])) return { kind: "name", name: token.text };
    const inside = [this.test(depth + 1)];
    while (this.symbol([","])) inside.push(this.test(depth + 1));
    this.expect(")");
    return { kind: "call", operator: token.text, inside };
  }

  private symbol(wanted: string[]): string | null {
    const token = this.tokens[this.next];
    if (token?.kind !== "symbol" || !wanted.includes(token.text)) return null;
    this.next += 1;
    return token.text;
  }

  private expect(wanted: string): void {
    if (!this.symbol([wanted])) throw this.unexpected(wanted);
  }

  private unexpected(expected: string): SyntaxError {
    const found = this.tokens[this.next]?.text ?? "the end";
    return new SyntaxError(`expected ${expected}, found ${found} in ${this.text}`);
  }
}
