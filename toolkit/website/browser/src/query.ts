/** The SQL box: a question to a study's registers, answered in the reader's browser. */

import { block, bodyOf, button, count, element, make, messageOf, save, tableOf } from "./page";
import type { RegisterFile, RegisterTable, Value } from "./registers";
import { catalogue, columnsOf, isLoaded, rows, shown, table } from "./registers";
import { type Answer, ask, csv, explained } from "./sql";

interface Asked {
  study: string;
  examples: { title: string; sql: string }[];
  left_out: string[];
}

const SHOWN_ROWS = 500;
/** Bytes that a question may load before the reader is asked. */
const MUCH = 5_000_000;
const LONGEST_CELL = 400;

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
      const read = (entry: RegisterFile, columns: string[]) => columnsOf(name, entry, columns);
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

/** For tests: the same functions, without a page. */
(globalThis as Record<string, unknown>)["toolkitQuery"] = { ask, catalogue, columnsOf, csv, explained, rows, table };
if (typeof document !== "undefined") start();
