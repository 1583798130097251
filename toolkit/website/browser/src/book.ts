/** What is registered, as the frozen rules and their amendments say it. */

import { parse as parseToml } from "smol-toml";
import type { Criterion, Declared, Endpoint, IntervalSpec, Rule, Statistic } from "./evidence";
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
  /** Rule → its words, which decide nothing. */
  texts: Record<string, string>;
}

type Table = Record<string, unknown>;

const PERCENTILE = "percentile bootstrap";

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
      scale_rewards: text(cell["scale_rewards"]),
      fixed: { ...training, ...table(cell["fixed"]) },
    })),
    texts: of("rules", (content) => text(content["text"])),
    rules: of("rules", readRule),
    endpoints: of("endpoints", (content) => readEndpoint(content, frozen, scaling)),
    statistics: of("statistics", (content) => content as unknown as Statistic),
    intervals: of("intervals", (content) => readInterval({ ...common, ...content })),
  };
}

/** The part of a book that a rule is decided on, in the book's order: what it names, and what that names in turn. */
export function partFor(book: Book, rule: string): Declared {
  if (!(rule in book.rules)) throw new Error(`the registration has no rule ${rule}`);
  const names = new Set([rule]);
  for (const name of names) { // those added on the way included
    const { criteria = [], estimate = "", interval = "" } = book.rules[name] ?? {};
    const formula = book.statistics[name]?.formula;
    const parts = formula ? namesIn(parse(formula)) : [];
    const named = [...criteria.flatMap((criterion) => criterion.names), estimate, interval, book.intervals[name]?.endpoint ?? ""];
    for (const other of [...named, ...parts]) names.add(other);
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
  const kind = text(content["kind"]) as Rule["kind"];
  const criteria = content["criteria"] as Omit<Criterion, "names">[];
  return {
    kind,
    joint: kind !== "prediction" || content["parts"] === "joint",
    superseded: text(content["superseded"]),
    binding: text(content["binding"]),
    open: text(content["open"]),
    shut: text(content["shut"]),
    estimate: text(content["estimate"]),
    interval: text(content["interval"]),
    threshold: (content["threshold"] as string | undefined) ?? null,
    readings: table(content["readings"]) as Record<string, string>,
    criteria: criteria.map((c) => ({ ...c, reading: c.reading ?? null, names: namesIn(parse(c.test)) })),
  };
}

function readEndpoint(content: Table, frozen: Table, scaling: string): Endpoint {
  const set = table(table(frozen["sets"])[text(content["set"])]);
  const said = table(set["where"]) as Record<string, string>;
  const declared = table(frozen["attributes"]);
  const part = (isAttribute: boolean) =>
    Object.fromEntries(Object.entries(said).filter(([name]) => name in declared === isAttribute));
  const [tasks, schedules] = [Number(set["tasks"] ?? 0), Number(set["schedules"] ?? 0)];
  const outcome = table(content["outcome"]) as Record<string, string>;
  const count = outcome["count"] ?? outcome["sum"];
  const checkpoints = ((content["checkpoints"] ?? []) as string[]).map((place) => {
    const [trajectory = "", step] = place.split("@");
    return { trajectory, step: Number(step) };
  });
  const endpoint: Endpoint = {
    register: text(content["register"]),
    outcome:
      count === undefined
        ? { figure: text(outcome["figure"]), over: outcome["over"] ?? null }
        : { count, of: text(outcome["of"]) },
    where: { ...part(false), ...(table(content["where"]) as Record<string, string>) },
    attributes: part(true),
    expect: { ...(tasks ? { episodes: tasks * schedules } : {}), ...(table(content["expect"]) as Record<string, number>) },
    condition: text(content["condition"]),
    scale_rewards: text(content["scale_rewards"]) || scaling,
    arms: (content["arms"] ?? []) as string[],
    seeds: (content["seeds"] ?? []) as number[],
    by: content["by"] as Endpoint["by"],
    steps: (content["steps"] ?? []) as number[],
    over_steps: text(content["over_steps"]) as Endpoint["over_steps"],
    threshold: (content["threshold"] as string | undefined) ?? null,
    checkpoints,
    low: (content["range"] as string[])[0] ?? "",
    high: (content["range"] as string[])[1] ?? "",
    tasks,
    schedules,
    // What the study's rows say is filled in by `reading`.
    has_register: false,
    runs: [],
    members: [],
  };
  if (endpoint.by === "seed") endpoint.members = endpoint.seeds.map(String);
  if (endpoint.by === "run")
    endpoint.members = endpoint.arms.flatMap((arm) => endpoint.seeds.map((seed) => described(endpoint, arm, seed)));
  if (endpoint.by === "checkpoint") endpoint.members = checkpoints.map(({ trajectory, step }) => `${trajectory}@${step}`);
  return endpoint;
}

function readInterval(content: Table): IntervalSpec {
  const method = text(content["method"]);
  return {
    endpoint: text(content["endpoint"]),
    level: text(content["level"]),
    method,
    resamples: Number(content["resamples"] ?? 0),
    resampled: (content["resampled"] ?? []) as string[],
    // Tasks are crossed with seeds by this method alone.
    crossing: method === PERCENTILE ? (text(content["crossing"]) as IntervalSpec["crossing"]) : "",
    rng_seed: String(content["rng_seed"] ?? 0),
    recorded: { missing: [], not_run: false },
  };
}

function table(value: unknown): Table {
  return (value ?? {}) as Table;
}

function text(value: unknown): string {
  return (value ?? "") as string;
}
