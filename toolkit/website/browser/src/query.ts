/**
 * The SQL box: a question to a study's registers, answered in the reader's browser. No more files and columns are read
 * than a query needs.
 */

import { type AsyncDataSource, type AsyncRow, type ExprNode, executeSql } from "squirreling";
import { canHash } from "./bytes";
import { block, bodyOf, button, count, element, make, messageOf, save, tableOf } from "./page";
import type { RegisterFile, RegisterTable, Row, Value } from "./registers";
import { catalogue, isLoaded, rowsOf, shown, table } from "./registers";

interface Asked {
  study: string;
  examples: { title: string; sql: string }[];
  left_out: string[];
}

interface Answer {
  columns: string[];
  /** Every row, its values in the order of the columns. */
  rows: Value[][];
  rowsRead: number;
  filesRead: number;
  /** Whether what was read was held against the manifest. */
  checked: boolean;
}

const SHOWN_ROWS = 500;
/** Bytes that a question may load before the reader is asked. */
const MUCH = 5_000_000;
const LONGEST_CELL = 400;
const SLICE_MS = 30; // a page that does nothing longer than this still answers to keys and scrolling
const LOOK = 512; // values between two looks at the clock
const AHEAD = 8; // files that are loaded while one is read
const USING = /\bUSING\s*\(\s*([\w\s,"]+?)\s*\)/i;
const NO_TABLE = /^Table "([^"]*)" not found(?! in)/; // "in": a name before a dot, which need not be a table

/** Reads columns of one file of a table. */
type Reader = (entry: RegisterFile, columns: string[]) => Promise<Row[]>;
/** Whether files of so many bytes may be loaded; rejects where they may not. */
type Allow = (files: RegisterFile[]) => Promise<void>;

function start(): void {
  const box = element("#sql", HTMLElement);
  const form = element("form", HTMLFormElement, box);
  const study = element("select", HTMLSelectElement, box);
  const text = element("textarea", HTMLTextAreaElement, box);
  const run = element("button[type=submit]", HTMLButtonElement, box);
  const go = element("button.go", HTMLButtonElement, box);
  const stop = element("button.stop", HTMLButtonElement, box);
  const saving = element("button.save", HTMLButtonElement, box);
  const status = element("[role=status]", HTMLElement, box);
  const output = element(".answer-rows", HTMLElement, box);
  const offered = element(".choices", HTMLElement, box);
  const asked = block<Asked[]>("#sql-examples");
  let stopping = new AbortController();
  let answered: Answer | null = null;

  const say = (words: string, wrong = false): void => {
    status.textContent = words;
    status.classList.toggle("wrong", wrong);
  };

  const agreed = new Set<string>();

  /** Ask once a study whether what a question reads may be loaded, where it is much. */
  const allowed = async (name: string, files: RegisterFile[], signal: AbortSignal): Promise<void> => {
    const absent = files.filter((entry) => !isLoaded(name, entry));
    const bytes = absent.reduce((sum, entry) => sum + entry.bytes, 0);
    if (bytes <= MUCH || agreed.has(name)) return;
    say(`The answer needs ${(bytes / 1e6).toFixed(1)} MB of this site, in ${count(absent.length, "file")}. Load them?`);
    go.hidden = false;
    try {
      await new Promise((resolve, reject) => {
        go.addEventListener("click", resolve, { once: true });
        signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
      });
    } finally {
      go.hidden = true;
    }
    agreed.add(name);
    say("Reading …");
  };

  const entry = () => asked.find((one) => one.study === study.value);
  const choose = (): void => {
    const choices = (entry()?.examples ?? []).map(({ title, sql }) =>
      button(title, () => {
        text.value = sql;
        void answer();
      }),
    );
    offered.replaceChildren(...choices);
  };

  /** Run what the box holds. */
  async function answer(): Promise<void> {
    stopping.abort();
    const { signal } = (stopping = new AbortController());
    const began = performance.now();
    const [name, sql, leftOut] = [study.value, text.value, entry()?.left_out ?? []];
    answered = null;
    run.disabled = saving.hidden = true;
    stop.hidden = false;
    output.replaceChildren();
    say("Reading …");
    // Study and query stay in the address, so that it can be shared.
    const hash = `#${new URLSearchParams({ study: name, sql })}`;
    if (hash !== location.hash) history.replaceState(null, "", hash);
    const isLast = () => stopping.signal === signal;
    let tables: Record<string, RegisterTable> = {};
    try {
      tables = await catalogue(name);
      const read = (entry: RegisterFile, columns: string[]) => rowsOf(name, entry, columns);
      const told = (number: number) => void (isLast() && say(`${count(number, "row")} read …`));
      const got = await ask(sql, tables, read, told, signal, (files) => allowed(name, files, signal));
      if (!isLast()) return;
      answered = got;
      output.replaceChildren(drawn(got));
      saving.hidden = got.rows.length === 0;
      const some = got.rows.length > SHOWN_ROWS ? `, the first ${SHOWN_ROWS} shown` : "";
      const proven = got.checked
        ? "each file's SHA-256 is the manifest's"
        : "not checked: this browser hashes nothing on a page from this address";
      const seconds = ((performance.now() - began) / 1000).toFixed(2);
      const source = got.filesRead
        ? `${count(got.rowsRead, "row")} of ${count(got.filesRead, "file")} read in ${seconds} s; ${proven}`
        : "No file was read: the manifest says it";
      say(`${count(got.rows.length, "row")}${some}. ${source}.`);
    } catch (error) {
      const held = { study: name, tables: Object.keys(tables), leftOut };
      if (isLast()) say(explained(messageOf(error), sql, held), true);
    } finally {
      if (isLast()) {
        run.disabled = false;
        stop.hidden = true;
      }
    }
  }

  /** Take study and query from the address, as another page may give them. */
  const recall = (): boolean => {
    const given = new URLSearchParams(location.hash.slice(1));
    const sql = given.get("sql");
    if (sql === null) return false;
    const named = given.get("study") ?? "";
    if (asked.some((one) => one.study === named)) study.value = named;
    choose();
    text.value = sql;
    box.scrollIntoView();
    void answer();
    return true;
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void answer();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void answer();
  });
  study.addEventListener("change", () => {
    choose();
    text.value = entry()?.examples[0]?.sql ?? "";
  });
  stop.addEventListener("click", () => {
    stopping.abort();
    say("Stopping …");
  });
  saving.addEventListener("click", () => {
    if (answered) save(`${study.value}.csv`, "text/csv", csv(answered));
  });
  window.addEventListener("hashchange", recall);
  if (!recall()) choose();
}

/** The first rows of an answer as a table; values are text. */
function drawn(answer: Answer): HTMLElement {
  const cell = (value: Value): HTMLElement => {
    const said = shown(value);
    const text = said.length > LONGEST_CELL ? `${said.slice(0, LONGEST_CELL)}…` : said;
    const isNumber = typeof value === "number" || typeof value === "bigint";
    return make("td", { text, class: isNumber ? "num" : value === null ? "null" : "" });
  };
  return tableOf(answer.columns, bodyOf(answer.rows.slice(0, SHOWN_ROWS).map((row) => row.map(cell))), "Answer", "rows");
}

/** Run a query; a few times a second `progress` is told of rows read, and before files are read `allow` is asked. */
async function ask(
  query: string,
  tables: Record<string, RegisterTable>,
  read: Reader,
  progress: (read: number) => void = () => undefined,
  signal: AbortSignal = new AbortController().signal,
  allow: Allow = () => Promise.resolve(),
): Promise<Answer> {
  const answer: Answer = { columns: [], rows: [], rowsRead: 0, filesRead: 0, checked: canHash() };
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
      if (!needed.length) needed.push(...entry.columns.slice(0, 1)); // rows are counted, too
      async function* scanned(): AsyncGenerator<AsyncRow> {
        const ofRun = conditions.filter(({ column }) => column === "run_id");
        const files = entry.files.filter(({ run }) => !run || ofRun.every(({ holds }) => holds(run)));
        await allow(files);
        const parts: Promise<Row[]>[] = [];
        for (let next = 0; next < files.length; next += 1) {
          for (const file of files.slice(parts.length, next + AHEAD)) {
            const part = read(file, needed);
            part.catch(() => undefined); // said when its turn comes
            parts.push(part);
          }
          const part = await parts[next]!;
          delete parts[next];
          answer.filesRead += 1;
          for (const row of part) {
            answer.rowsRead += 1;
            const turn = pace();
            if (turn) await turn;
            if (!conditions.every(({ column, holds }) => holds(row[column] ?? null))) continue;
            // Reading a cell can take its turn, too: grouping and sorting read nothing else.
            const cell = (column: string) => async () => {
              await pace();
              return row[column] ?? null;
            };
            yield { columns, cells: Object.fromEntries(columns.map((column) => [column, cell(column)])) };
          }
        }
      }
      // The engine tests every condition again: what is left out here is only what can never hold.
      return { rows: scanned, appliedWhere: false, appliedLimitOffset: false };
    },
  };
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
function csv(answer: Answer): string {
  const cell = (value: Value): string => {
    const text = value === null ? "" : shown(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [answer.columns, ...answer.rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Why the engine refuses a query, and what to write instead or where else to ask: its message, or a better one. */
function explained(message: string, sql: string, held: { study: string; tables: string[]; leftOut: string[] }): string {
  const { study, tables, leftOut } = held;
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

/** For tests: the same functions, without a page. */
(globalThis as Record<string, unknown>)["toolkitQuery"] = { ask, catalogue, csv, explained, rowsOf, table };
if (typeof document !== "undefined") start();
