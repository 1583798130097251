/** One SQL query over a study's registers: no more files and columns are read than it needs. */

import { type AsyncCells, type AsyncDataSource, type AsyncRow, type ExprNode, executeSql } from "squirreling";
import { type Columns, type RegisterFile, type RegisterTable, type Value, shown } from "./registers";

/** Reads columns of one file of a table. */
type Reader = (entry: RegisterFile, columns: string[]) => Promise<Columns>;

export interface Answer {
  columns: string[];
  /** Every row, its values in the order of the columns. */
  rows: Value[][];
  rowsRead: number;
  filesRead: number;
  /** Whether all that was read was held against the manifest. */
  checked: boolean;
}

/** Whether files of so many bytes may be loaded; rejects where they may not. */
type Allow = (files: RegisterFile[]) => Promise<void>;

const SLICE_MS = 30; // a page that does nothing longer than this still answers to keys and scrolling
const LOOK = 512; // values between two looks at the clock
const AHEAD = 8; // files that are loaded while one is read

/**
 * Run a query.
 *
 * @param query the SQL text.
 * @param tables the study's tables, by name.
 * @param read reads columns of a file.
 * @param progress told of rows read, a few times a second.
 * @param signal stops the query.
 * @param allow asked before the files of a table are read.
 */
export async function ask(
  query: string,
  tables: Record<string, RegisterTable>,
  read: Reader,
  progress: (read: number) => void = () => undefined,
  signal: AbortSignal = new AbortController().signal,
  allow: Allow = () => Promise.resolve(),
): Promise<Answer> {
  const answer: Answer = { columns: [], rows: [], rowsRead: 0, filesRead: 0, checked: true };
  const pace = pacer(() => progress(answer.rowsRead), signal);
  const sources = Object.fromEntries(
    Object.entries(tables).map(([name, entry]) => [name, source(entry, read, answer, pace, allow)]),
  );
  const results = executeSql({ tables: sources, query: query.trim().replace(/;$/, ""), signal });
  answer.columns = results.columns;
  for await (const row of results.rows()) {
    answer.columns = row.columns;
    const values: Value[] = [];
    for (const column of row.columns) values.push(((await row.cells[column]?.()) ?? null) as Value);
    answer.rows.push(values);
  }
  if (signal.aborted) throw new Error("stopped");
  return answer;
}

/** Give the page its turn where a slice of time is over: a promise then, and nothing otherwise. */
function pacer(tell: () => void, signal: AbortSignal): () => Promise<void> | undefined {
  let until = performance.now() + SLICE_MS;
  let calls = 0;
  return () => {
    calls += 1;
    if (calls % LOOK || performance.now() < until) return undefined;
    tell();
    return new Promise((resolve, reject) => {
      setTimeout(() => {
        until = performance.now() + SLICE_MS;
        if (signal.aborted) reject(new Error("stopped"));
        else resolve();
      });
    });
  };
}

/** A table as the engine reads it: files one by one, those that a condition rules out never. */
function source(entry: RegisterTable, read: Reader, answer: Answer, pace: () => Promise<void> | undefined, allow: Allow): AsyncDataSource {
  return {
    numRows: entry.rows,
    columns: entry.columns,
    scan({ columns = entry.columns, where }) {
      const conditions = tests(where, entry.columns);
      const needed = [...new Set([...columns, ...conditions.map((test) => test.column)])];
      async function* scanned(): AsyncGenerator<AsyncRow> {
        const ofRun = conditions.filter(({ column }) => column === "run_id");
        const files = entry.files.filter(({ run }) => !run || ofRun.every(({ holds }) => holds(run)));
        await allow(files);
        const parts: Promise<Columns>[] = [];
        for (let next = 0; next < files.length; next += 1) {
          for (const file of files.slice(parts.length, next + AHEAD)) {
            const part = read(file, needed);
            part.catch(() => undefined); // said when its turn comes
            parts.push(part);
          }
          const part = await parts[next]!;
          delete parts[next];
          answer.filesRead += 1;
          answer.checked &&= part.checked;
          const checks = conditions.map((test) => ({ values: part.columns[test.column] ?? [], holds: test.holds }));
          for (let at = 0; at < part.rows; at += 1) {
            answer.rowsRead += 1;
            const turn = pace();
            if (turn) await turn;
            if (!checks.every(({ values, holds }) => holds(values[at] ?? null))) continue;
            yield { columns, cells: cellsOf(part, columns, at, pace) };
          }
        }
      }
      // The engine tests every condition again: what is left out here is only what can never hold.
      return { rows: scanned, appliedWhere: false, appliedLimitOffset: false };
    },
  };
}

/** The cells of a row. Reading one can take its turn, too: grouping and sorting read nothing else. */
function cellsOf(part: Columns, columns: string[], at: number, pace: () => Promise<void> | undefined): AsyncCells {
  const cells: AsyncCells = {};
  for (const column of columns) {
    const value = part.columns[column]?.[at] ?? null;
    cells[column] = () => {
      const turn = pace();
      return turn ? turn.then(() => value) : Promise.resolve(value);
    };
  }
  return cells;
}

interface Test {
  column: string;
  /** False only where the condition cannot hold. */
  holds: (value: Value) => boolean;
}

/** The conditions of a WHERE that compare a column with one literal, or with a list of them, joined by AND. */
function tests(where: ExprNode | undefined, columns: string[]): Test[] {
  if (!where) return [];
  if (where.type === "binary" && where.op === "AND") return [...tests(where.left, columns), ...tests(where.right, columns)];
  if (where.type === "in valuelist" && where.expr.type === "identifier" && columns.includes(where.expr.name)) {
    const literals = where.values.map((value) => (value.type === "literal" ? (value.value as Value) : undefined));
    if (literals.some((literal) => typeof literal !== "string")) return [];
    return [{ column: where.expr.name, holds: (value) => typeof value !== "string" || literals.includes(value) }];
  }
  if (where.type !== "binary" || (where.op !== "=" && where.op !== "==")) return [];
  for (const [name, other] of [[where.left, where.right], [where.right, where.left]] as const) {
    if (name.type === "identifier" && other.type === "literal" && columns.includes(name.name)) {
      const literal = other.value as Value;
      // Values of another type are left to the engine, which may convert them.
      return [{ column: name.name, holds: (value) => typeof value !== typeof literal || value === literal || literal === null }];
    }
  }
  return [];
}

/** An answer as comma-separated values, quoted where they must be. */
export function csv(answer: Answer): string {
  const cell = (value: Value): string => {
    const text = value === null ? "" : shown(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [answer.columns, ...answer.rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}
