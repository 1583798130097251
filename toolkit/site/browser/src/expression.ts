/**
 * From the text of a test to its expression.
 *
 *   test     = sum [ comparison sum ]
 *   sum      = product { ("+" | "-") product }
 *   product  = atom { ("*" | "/") atom }
 *   atom     = number | name | operator "(" test { "," test } ")" | "(" test ")" | "-" atom
 */

import { Fraction, ZERO } from "./value";

/** A number, a name, or an operator over others. */
export type Expression = Fraction | string | Call;

export interface Call {
  operator: string;
  inside: Expression[];
}

const COMPARISONS = [">=", "<=", ">", "<", "="];
const LEVELS = [COMPARISONS, ["+", "-"], ["*", "/"]];
const LONGEST = 2000;
const MOST_TOKENS = 200;
const DEEPEST = 40;
const TOKEN = /\d+(?:\.\d+)?|[A-Za-z_]\w*|>=|<=|\S/g;

/** Parse a test; throws a SyntaxError at what the language does not have. */
export function parse(text: string): Expression {
  const tokens = text.length > LONGEST ? [] : (text.match(TOKEN) ?? []);
  if (text.length > LONGEST || tokens.length > MOST_TOKENS) throw new SyntaxError("a test is too long");
  const unexpected = (expected: string) =>
    new SyntaxError(`expected ${expected}, found ${tokens[0] ?? "the end"} in ${text}`);
  const take = (wanted: string[]) => (wanted.includes(tokens[0] ?? "") ? tokens.shift() : undefined);

  const test = (depth: number, level = 0): Expression => {
    const operators = LEVELS[level];
    if (!operators) return atom(depth);
    let left = test(depth, level + 1);
    for (let operator; (operator = take(operators)); ) {
      left = call(operator, left, test(depth, level + 1));
      if (!level && COMPARISONS.includes(tokens[0] ?? "")) throw unexpected("no second comparison");
    }
    return left;
  };
  const listed = (depth: number): Expression[] => {
    const inside = [test(depth)];
    while (take([","])) inside.push(test(depth));
    if (!take([")"])) throw unexpected(")");
    return inside;
  };
  const atom = (depth: number): Expression => {
    if (depth > DEEPEST) throw unexpected(`a depth of ${DEEPEST} at most`);
    if (take(["-"])) return call("-", ZERO, atom(depth + 1));
    if (take(["("])) {
      const [inside, other] = listed(depth + 1);
      if (!inside || other !== undefined) throw unexpected("one test in brackets");
      return inside;
    }
    if (!/^\w/.test(tokens[0] ?? "")) throw unexpected("a number, a name or an operator");
    const word = tokens.shift() as string;
    if (/^\d/.test(word)) return new Fraction(word);
    return take(["("]) ? call(word, ...listed(depth + 1)) : word;
  };

  const expression = test(0);
  if (tokens.length) throw unexpected("the end of the test");
  return expression;
}

function call(operator: string, ...inside: Expression[]): Call {
  return { operator, inside };
}

/** A call and its operator, or nothing of a number or a name. */
export function called(expression: Expression): Partial<Call> {
  return typeof expression === "string" || expression instanceof Fraction ? {} : expression;
}

/** What a comparison of an interval with a margin stands for: its ends held against numbers. */
export function expanded({ operator, inside }: Call): Call {
  const [interval, margin] = inside as [Expression, Expression];
  const low = call(">=", call("lower", interval), call("-", ZERO, margin));
  return operator === "equivalent" ? call("all", low, call("<=", call("upper", interval), margin)) : low;
}

/** What a test compares, of every member perhaps, and with what; nothing of a test of tests. */
export function compared(expression: Expression): Expression[] {
  const { operator = "", inside = [] } = called(expression);
  if (["each", "majority", "not"].includes(operator)) return inside.slice(0, 1).flatMap(compared);
  if (["within", "between", "decreasing"].includes(operator)) return inside.slice(0, 1);
  if (operator === "non_inferior") return expanded({ operator, inside }).inside;
  return COMPARISONS.includes(operator) ? inside : [];
}

/** Every name that an expression mentions, in order. */
export function namesIn(expression: Expression): string[] {
  return typeof expression === "string" ? [expression] : (called(expression).inside ?? []).flatMap(namesIn);
}
