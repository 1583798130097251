/** What is registered, as the frozen rules and their amendments say it. */

import { parse as parseToml } from "smol-toml";
import { type Declared, ENDPOINT, type Endpoint, INTERVAL, type IntervalSpec, RULE, type Rule } from "./evidence";
import { namesIn, parse } from "./expression";

/** Runs of one line of the registered matrix. */
export interface Cell {
  condition: string;
  arms: string[];
  seeds: number[];
  scale_rewards: string;
  /** Columns of `runs`, and what a run must have there to count. */
  fixed: Record<string, unknown>;
}

export interface Book extends Declared {
  roles: string[];
  cells: Cell[];
}

type Table = Record<string, unknown>;

/** Read the rules; an amendment adds what it declares, and its rules take the place of those before. */
export function readBook(rules: string, amendments: readonly string[]): Book {
  const frozen = parseToml(rules) as Table;
  const parts = [frozen, ...amendments.map((text) => parseToml(text) as Table)];
  const of = <T>(name: string, read: (content: Table) => T): Record<string, T> => {
    const declared = parts.flatMap((part) => Object.entries(table(part[name])));
    return Object.fromEntries(declared.map(([id, content]) => [id, read(table(content))]));
  };
  const matrix = (frozen["matrix"] ?? []) as Table[];
  const training = table(frozen["training"]);
  const common = { ...table(frozen["interval_method"]), ...table(frozen["interval_conventions"]) };
  const scaling = matrix.some((cell) => "scale_rewards" in cell) ? "group" : "";
  return {
    roles: frozen["deciding_roles"] as string[],
    cells: matrix.map((cell) => ({
      ...(cell as unknown as Cell),
      scale_rewards: String(cell["scale_rewards"] ?? ""),
      fixed: { ...training, ...table(cell["fixed"]) },
    })),
    rules: of("rules", readRule),
    endpoints: of("endpoints", (content) => readEndpoint(content, frozen, scaling)),
    statistics: of("statistics", (content) => content as { formula: string; unit: string }),
    intervals: of("intervals", (content) => readInterval({ ...common, ...content })),
  };
}

/** The part of a book that a rule is decided on, in the book's order: what it names, and what that names in turn. */
export function partFor(book: Book, rule: string): Declared {
  if (!(rule in book.rules)) throw new Error(`the registration has no rule ${rule}`);
  const names = new Set([rule]);
  for (const name of names) { // those added on the way included
    const { criteria = [], estimate = "", interval = "" } = book.rules[name] ?? {};
    const { [name]: statistic } = book.statistics;
    const named = [estimate, interval, book.intervals[name]?.endpoint ?? "", ...criteria.flatMap((one) => one.names)];
    for (const other of statistic ? namesIn(parse(statistic.formula)) : named) names.add(other);
  }
  const only = <T>(part: Record<string, T>) => Object.fromEntries(Object.entries(part).filter(([name]) => names.has(name)));
  const { rules, endpoints, statistics, intervals } = book;
  return { rules: only(rules), endpoints: only(endpoints), statistics: only(statistics), intervals: only(intervals) };
}

/** Where a run stands, in words. */
export function described(endpoint: Endpoint, arm: string, seed: number): string {
  const { condition, scale_rewards: scaled } = endpoint;
  return `${condition} ${arm} seed ${seed}${["", "group"].includes(scaled) ? "" : ` with scale_rewards ${scaled}`}`;
}

function readRule(content: Table): Rule {
  const rule = { ...RULE, ...content } as unknown as Rule;
  const joint = rule.kind !== "prediction" || content["parts"] === "joint";
  const criteria = rule.criteria.map((one) => ({ ...one, reading: one.reading ?? null, names: namesIn(parse(one.test)) }));
  return { ...rule, joint, criteria };
}

function readEndpoint(content: Table, frozen: Table, scaling: string): Endpoint {
  const set = table(table(frozen["sets"])[String(content["set"])]);
  const declared = table(frozen["attributes"]);
  const said = Object.entries(table(set["where"]) as Record<string, string>);
  const part = (isAttribute: boolean) => Object.fromEntries(said.filter(([name]) => name in declared === isAttribute));
  const [tasks, schedules] = [Number(set["tasks"] ?? 0), Number(set["schedules"] ?? 0)];
  const { count, sum, of, figure, over } = content["outcome"] as Record<string, string>;
  const checkpoints = ((content["checkpoints"] ?? []) as string[]).map((place) => {
    const [trajectory = "", step] = place.split("@");
    return { trajectory, step: Number(step) };
  });
  const [low, high] = content["range"] as [string, string];
  return {
    ...(ENDPOINT as unknown as Endpoint),
    ...content,
    outcome: { above: count ?? sum ?? figure ?? "", below: of ?? over ?? "" },
    where: { ...part(false), ...(content["where"] as Record<string, string> | undefined) },
    attributes: part(true),
    expect: { ...(tasks ? { episodes: tasks * schedules } : {}), ...(content["expect"] as Record<string, number> | undefined) },
    scale_rewards: String(content["scale_rewards"] ?? scaling),
    checkpoints,
    low,
    high,
    tasks,
    schedules,
  };
}

function readInterval(content: Table): IntervalSpec {
  const spec = { ...INTERVAL, ...content, rng_seed: String(content["rng_seed"] ?? 0) } as unknown as IntervalSpec;
  // Tasks are crossed with seeds by this method alone.
  return spec.method === "percentile bootstrap" ? spec : { ...spec, crossing: "" };
}

function table(value: unknown): Table {
  return (value ?? {}) as Table;
}
