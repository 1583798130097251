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
type Pace = () => Promise<void> | undefined;

function pacer(tell: () => void, signal: AbortSignal): Pace {
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
function source(entry: RegisterTable, read: Reader, answer: Answer, pace: Pace, allow: Allow): AsyncDataSource {
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
          for (let at = 0; at < part.rows; at += 1) {
            answer.rowsRead += 1;
            const turn = pace();
            if (turn) await turn;
            if (conditions.every(({ column, holds }) => holds(part.columns[column]?.[at] ?? null)))
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
function cellsOf(part: Columns, columns: string[], at: number, pace: Pace): AsyncCells {
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
  if (where?.type === "binary" && where.op === "AND") return [where.left, where.right].flatMap((one) => tests(one, columns));
  const sides: [ExprNode, ExprNode[]][] =
    where?.type === "in valuelist"
      ? [[where.expr, where.values]]
      : where?.type === "binary" && (where.op === "=" || where.op === "==")
        ? [[where.left, [where.right]], [where.right, [where.left]]]
        : [];
  return sides.flatMap(([name, values]) => {
    if (name.type !== "identifier" || !columns.includes(name.name)) return [];
    const literals = values.map((value) => (value.type === "literal" ? (value.value as Value) : null));
    // What is no literal is left to the engine, and so are values of another type, which it may convert.
    const holds = (value: Value) =>
      literals.some((literal) => literal === null || typeof value !== typeof literal || value === literal);
    return [{ column: name.name, holds }];
  });
}

/** An answer as comma-separated values, quoted where they must be. */
export function csv(answer: Answer): string {
  const cell = (value: Value): string => {
    const text = value === null ? "" : shown(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [answer.columns, ...answer.rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** What a study has, as the box knows it. */
export interface Held {
  study: string;
  /** Tables that travel with the site. */
  tables: string[];
  /** Tables of the study that do not. */
  leftOut: string[];
}

const USING = /\bUSING\s*\(\s*([\w\s,"]+?)\s*\)/i;
const NO_TABLE = /^Table "([^"]*)" not found(?! in)/; // "in": a name before a dot, which need not be a table

/** Why the engine refuses a query, and what to write instead or where else to ask: its message, or a better one. */
export function explained(message: string, sql: string, { study, tables, leftOut }: Held): string {
  const missing = NO_TABLE.exec(message)?.[1];
  const using = USING.exec(sql)?.[1];
  if (missing === undefined && using !== undefined && message.startsWith("Expected ON")) {
    const columns = using.split(",").map((name) => name.trim());
    const on = columns.map((name) => `a.${name} = b.${name}`).join(" AND ");
    return `This box does not know JOIN … USING (${columns.join(", ")}): name both tables and write JOIN … ON ${on}.`;
  }
  if (missing === undefined) return message;
  const known = leftOut.find((name) => name.toLowerCase() === missing.toLowerCase());
  if (known !== undefined) {
    return `The table ${known} of ${study} stays with the registers, and does not travel with the site. This asks it: toolkit sql "SELECT * FROM ${known} LIMIT 10" --study ${study}`;
  }
  const elsewhere = leftOut.length ? `; not with the site: ${leftOut.join(", ")}` : "";
  return `The study ${study} has no table ${missing}. It has ${tables.join(", ")}${elsewhere}.`;
}
