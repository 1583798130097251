/** Search over rules, runs, columns, studies, registrations and words: a combobox with a list below it. */

import MiniSearch from "minisearch";
import { element, make, root } from "./page";

type Found = [kind: string, name: string, meaning: string, place: string];

declare global {
  var toolkitSearch: Found[];
}

const SHOWN = 12;
// Of runs and columns there are many, each with few words.
const WEIGHTS: Record<string, number> = { Study: 4, Rule: 2, Registration: 2, Page: 2, Column: 0.3 };
const { compare } = new Intl.Collator("en", { numeric: true });
const found = globalThis.toolkitSearch;
const index = new MiniSearch({
  fields: ["name", "kind", "meaning"],
  searchOptions: {
    prefix: true,
    fuzzy: 0.15,
    combineWith: "AND",
    boost: { name: 3 },
    boostDocument: (id) => WEIGHTS[found[id as number]![0]] ?? 1,
  },
});
index.addAll(found.map(([kind, name, meaning], id) => ({ id, kind, name, meaning })));

const box = element(".search input", HTMLInputElement);
const list = make("ul", { id: "search-results", role: "listbox", ariaLabel: "Found", hidden: true });
box.after(list);
Object.assign(box, { role: "combobox", ariaAutoComplete: "list", ariaExpanded: "false" });
box.setAttribute("aria-controls", list.id);

let at = -1;

function mark(to: number): void {
  const options = list.querySelectorAll("[role=option]");
  at = options.length ? (to + options.length) % options.length : -1;
  options.forEach((option, number) => option.setAttribute("aria-selected", String(number === at)));
  options[at]?.scrollIntoView({ block: "nearest" });
  if (at < 0) box.removeAttribute("aria-activedescendant");
  else box.setAttribute("aria-activedescendant", `found-${at}`);
}

function show(isOpen: boolean): void {
  list.hidden = !isOpen;
  box.ariaExpanded = String(isOpen);
}

function search(): void {
  const words = box.value.trim();
  const hits = index
    .search(words)
    .sort((a, b) => b.score - a.score || compare(found[a.id as number]![1], found[b.id as number]![1]))
    .slice(0, SHOWN);
  const options = hits.map((hit, number) => {
    const [kind, name, meaning, place] = found[hit.id as number]!;
    const children = [make("small", { text: kind }), make("span", { text: name })];
    if (meaning) children.push(make("small", { text: meaning }));
    const option = make("li", { id: `found-${number}`, role: "option", children });
    option.dataset.place = place;
    return option;
  });
  const none = make("li", { text: "Nothing found", role: "option", ariaDisabled: "true" });
  list.replaceChildren(...(hits.length ? options : [none]));
  show(words !== "");
  mark(0);
}

function open(option: Element | null | undefined): void {
  const place = option instanceof HTMLElement && option.dataset.place;
  if (!place) return;
  const [page, fragment] = place.split("#") as [string, string?];
  show(false);
  location.href = root + page.split("/").map(encodeURIComponent).join("/") + (fragment ? `#${fragment}` : "");
}

box.addEventListener("input", search);
box.addEventListener("focus", () => show(box.value.trim() !== ""));
box.addEventListener("blur", () => show(false));
box.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") mark(at + 1);
  else if (event.key === "ArrowUp") mark(at - 1);
  else if (event.key === "Enter") open(list.children[at]);
  else if (event.key === "Escape") show(false);
  else return;
  event.preventDefault();
});
list.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus
list.addEventListener("click", (event) => open(event.target instanceof Element ? event.target.closest("li") : null));
if (box.value) search();
