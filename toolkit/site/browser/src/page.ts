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

/** What a new element has: classes, text, children, and any property of its kind. */
type Options<E> = Partial<Omit<E, "children" | "text">> & { text?: string; class?: string; children?: Cell[] };

/** A new element; text is always text, never markup. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  { text, class: kind, children = [], ...properties }: Options<HTMLElementTagNameMap[K]> = {},
): HTMLElementTagNameMap[K] {
  const made = Object.assign(document.createElement(tag), properties);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

/** A button that does something. */
export function button(text: string, act: () => void): HTMLButtonElement {
  return make("button", { text, type: "button", onclick: act });
}

/** What stands in a cell of a table: a text, a node, or the cell itself. */
export type Cell = string | Node;

export function rowOf(cells: readonly Cell[]): HTMLTableRowElement {
  const made = cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : make("td", { children: [cell] })));
  return make("tr", { children: made });
}

/** A table that scrolls by itself. */
export function tableOf(head: readonly string[], body: HTMLTableSectionElement, label: string, kind = ""): HTMLElement {
  const header = make("tr", { children: head.map((text) => make("th", { text, scope: "col" })) });
  const table = make("table", { class: kind, children: [make("thead", { children: [header] }), body] });
  return make("div", { class: "scroll", tabIndex: 0, role: "region", ariaLabel: label, children: [table] });
}

export function bodyOf(rows: readonly (readonly Cell[])[]): HTMLTableSectionElement {
  return make("tbody", { children: rows.map(rowOf) });
}

/** Hand a text to the reader as a file. */
export function save(name: string, type: string, content: string): void {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
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

/** What is asked for once a name; what failed is tried again. */
export function once<T>(known: Map<string, Promise<T>>, name: string, make: () => Promise<T>): Promise<T> {
  const promise = known.get(name) ?? make();
  known.set(name, promise);
  promise.catch(() => known.delete(name));
  return promise;
}

const loading = new Map<string, Promise<unknown>>();

/** Load a script of this site once; a page opened from a folder may not fetch, but it may load scripts. */
export function load(name: string): Promise<unknown> {
  const make = () =>
    new Promise((onload, reject) => {
      const onerror = () => reject(new Error(`${name} cannot be loaded`));
      document.head.append(Object.assign(document.createElement("script"), { src: root + name, onload, onerror }));
    });
  return once(loading, name, make);
}

export function note(text: string): HTMLElement {
  return make("p", { class: "note", text });
}

/** A field with its name. */
export function labelled(text: string, field: HTMLElement): HTMLElement {
  return make("label", { children: [make("span", { text }), field] });
}
