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
  options: { text?: string; class?: string; children?: Node[] } = {},
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (options.class) made.className = options.class;
  if (options.text !== undefined) made.textContent = options.text;
  made.append(...(options.children ?? []));
  return made;
}

/** What stands in a cell of a table. */
export type Cell = string | Node;

function asNode(cell: Cell): Node {
  return typeof cell === "string" ? document.createTextNode(cell) : cell;
}

/** A table that scrolls by itself. */
export function tableOf(head: readonly string[], rows: readonly (readonly Cell[])[], label: string): Node {
  const header = make("tr");
  for (const text of head) {
    const cell = make("th", { text });
    cell.scope = "col";
    header.append(cell);
  }
  const body = rows.map((row) => make("tr", { children: row.map((cell) => make("td", { children: [asNode(cell)] })) }));
  const whole = make("table", {
    children: [make("thead", { children: [header] }), make("tbody", { children: body })],
  });
  const scroll = make("div", { class: "scroll", children: [whole] });
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", label);
  return scroll;
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
