/** What a rule is decided on: the registration's words, the study's rows, and what was recorded. Exact numbers are text. */

import { Fraction, Missing, Series, type Value, exact } from "./value";

interface Absent {
  missing: string[];
  not_run: boolean;
}

/** A number as text, true or false, what is missing, members in order, or nothing. */
type Written = string | boolean | null | Absent | { unit: string; members: [string, Written][] };

export interface Criterion {
  id: string;
  text: string;
  test: string;
  reading: string | null;
  names: string[];
}

/** What a rule says where its table says nothing. */
export const RULE = {
  ...{ superseded: "", binding: "", open: "", shut: "", estimate: "", interval: "" },
  readings: {} as Record<string, string>,
  threshold: null as string | null,
};

export type Rule = typeof RULE & {
  kind: "hypothesis" | "prediction" | "gate";
  /** Its words, which decide nothing. */
  text: string;
  joint: boolean;
  criteria: Criterion[];
};

/** The one run of an arm and a seed, or why there is none. */
export type Place = { arm: string; seed: number; run?: string } & Partial<Absent>;

/** What an endpoint says where its table says nothing, and what its study's rows say. */
export const ENDPOINT = {
  condition: "",
  arms: [] as string[],
  seeds: [] as number[],
  steps: [] as number[],
  over_steps: "" as "auc" | "auc_gain" | "mean" | "steps_to_threshold" | "",
  /** Why it cannot be measured; empty where it can. */
  lacks: "",
  runs: [] as Place[],
};

export type Endpoint = typeof ENDPOINT & {
  register: string;
  /** Columns of a quotient: of two counts or of two figures; of one figure over nothing. */
  outcome: { above: string; below: string };
  where: Record<string, string>;
  expect: Record<string, number>;
  scale_rewards: string;
  /** What the tasks are that it is measured on; on all of them where it is empty. */
  attributes: Record<string, string>;
  by: "seed" | "run" | "checkpoint" | "pooled" | "row";
  threshold?: string;
  checkpoints: { trajectory: string; step: number }[];
  low: string;
  high: string;
  tasks: number;
  schedules: number;
};

type Ends = Record<"low" | "high", string> & Record<"low_error" | "high_error", string | null>;

/** What an interval says where its table says nothing. */
export const INTERVAL = {
  resamples: 0,
  resampled: [] as string[],
  crossing: "" as "crossed" | "nested" | "",
  rng_seed: "0",
  recorded: { missing: [], not_run: false } as Ends | Absent,
};

export type IntervalSpec = typeof INTERVAL & Record<"endpoint" | "level" | "method", string>;

interface Recorded {
  verdict: string;
  original_verdict: string | null;
  evidence: string;
  readings: Record<string, string>;
  criteria: { id: string; value: Written; holds: boolean | Absent }[];
  estimate: Written;
  close_calls: string[];
}

/** What a rule page says, as `site/evidence.py` writes it: no rows, and no rules. */
export interface Said {
  study: string;
  rule: string;
  registration: { name: string; sha256: string };
  /** What all rows of the study say, as a SHA-256. */
  rows_sha256: string;
  intervals: Record<string, Ends | Absent>;
  /** Intervals that episodes of the study can be resampled for. */
  resampled: string[];
  /** Tests of significance, whose p-values are taken as recorded; adjusted is null in no family. */
  tests: Record<string, { p: Written; adjusted: Written }>;
  recorded: Record<string, Recorded>;
}

/** What a registration declares, by name. */
export interface Declared {
  rules: Record<string, Rule>;
  endpoints: Record<string, Endpoint>;
  /** Numbers made of endpoints, by a formula of the language. */
  statistics: Record<string, { formula: string; unit: string }>;
  intervals: Record<string, IntervalSpec>;
}

/** A rule with all that it is decided on but rows. */
export type Document = Declared & Pick<Said, "study" | "rule" | "tests" | "recorded" | "resampled">;

export type Row = Record<string, unknown>;

/** Rows by register; those of an endpoint on some tasks, by its name. */
export type Rows = ReadonlyMap<string, readonly Row[]>;

/** A rule with all that it is decided on. */
export interface Evidence {
  document: Document;
  rows: Rows;
}

/** A member of a table of the document; throws where the document lacks it. */
export function named<T>(table: Record<string, T>, name: string): T {
  const found = Object.hasOwn(table, name) ? table[name] : undefined;
  if (found === undefined) throw new Error(`there is no ${name} in what the rule is decided on`);
  return found;
}

/** A written value as a value. */
export function readValue(written: Written): Value | null {
  if (written === null || typeof written === "boolean") return written;
  if (typeof written === "string") return exact(written);
  if ("missing" in written) return new Missing(written.missing, written.not_run);
  return new Series(written.unit, written.members.map(([key, member]) => [key, readValue(member) as Fraction]));
}

/** A value as the document writes it. */
export function writeValue(value: Value | null): Written {
  if (value === null || typeof value === "boolean") return value;
  if (value instanceof Fraction) return value.toFraction();
  if (value instanceof Missing) return { missing: [...value.reasons], not_run: value.notRun };
  return { unit: value.unit, members: value.items.map(([key, member]) => [key, writeValue(member)]) };
}
