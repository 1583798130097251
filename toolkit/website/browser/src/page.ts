/** What every entry needs of the page that it runs on. */

/** The element with an id, of a type; throws where the page lacks it, since templates and scripts belong together. */
export function element<T extends Element>(selector: string, type: new () => T, within: ParentNode = document): T {
  const found = within.querySelector(selector);
  if (!(found instanceof type)) throw new Error(`the page has no ${selector}`);
  return found;
}

/** The JSON of a data block. */
export function block<T>(selector: string, within: ParentNode = document): T {
  return JSON.parse(element(selector, HTMLScriptElement, within).textContent ?? "null") as T;
}

/** A new element with classes and text; text is always text, never markup. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  options: { text?: string; class?: string; children?: Cell[] } = {},
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (options.class) made.className = options.class;
  if (options.text !== undefined) made.textContent = options.text;
  made.append(...(options.children ?? []));
  return made;
}

/** A button that does something. */
export function button(text: string, act: () => void): HTMLButtonElement {
  const made = make("button", { text });
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

/** What stands in a cell of a table: a text, a node, or the cell itself. */
export type Cell = string | Node;

export function rowOf(cells: readonly Cell[]): HTMLTableRowElement {
  const made = cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : make("td", { children: [cell] })));
  return make("tr", { children: made });
}

/** A table that scrolls by itself. */
export function tableOf(head: readonly string[], body: HTMLTableSectionElement, label: string, kind = ""): HTMLElement {
  const header = head.map((text) => make("th", { text }));
  for (const cell of header) cell.scope = "col";
  const children = [make("thead", { children: [make("tr", { children: header })] }), body];
  const scroll = make("div", { class: "scroll", children: [make("table", { class: kind, children })] });
  scroll.tabIndex = 0;
  scroll.role = "region";
  scroll.ariaLabel = label;
  return scroll;
}

export function bodyOf(rows: readonly (readonly Cell[])[]): HTMLTableSectionElement {
  return make("tbody", { children: rows.map(rowOf) });
}

/** Hand a text to the reader as a file. */
export function save(name: string, type: string, content: string): void {
  const link = make("a");
  link.download = name;
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function count(number: number, what: string): string {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

/** A name of the registers in words. */
export function spelt(name: string): string {
  return name.replaceAll("_", " ");
}

/** The way from this page to the root of the site, as an absolute address: it works from a folder, too. */
export const root: string =
  typeof document === "undefined" ? "" : new URL(".", element("script[src$='site.js']", HTMLScriptElement).src).href;

const loading = new Map<string, Promise<void>>();

/** Load a script of this site once; a page opened from a folder may not fetch, but it may load scripts. */
export function load(name: string): Promise<void> {
  let promise = loading.get(name);
  if (!promise) {
    promise = new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = root + name;
      script.onload = () => resolve();
      script.onerror = () => reject(new Error(`${name} cannot be loaded`));
      document.head.append(script);
    });
    loading.set(name, promise);
  }
  return promise;
}
