/** On every page: the search box and the menu of its head; charts say their marks, and are saved as a table or a picture. */

import { button, load, make, save } from "./page";

const LOOKS = ["fill", "font", "opacity", "paint-order", "stroke", "stroke-dasharray", "stroke-width", "text-anchor"];
const told = make("output", { class: "told" });

// A search box, whose search is loaded when it is first used, and a menu that folds itself.
const box = document.querySelector<HTMLInputElement>(".search input");
box?.form?.addEventListener("submit", (event) => event.preventDefault());
box?.addEventListener("focus", () => load("search-index.js").then(() => load("search.js")), { once: true });

document.addEventListener("keydown", (event) => {
  const writes = event.target instanceof Element && event.target.closest("input, select");
  if (event.key !== "/" || writes || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  box?.focus();
});

const menu = document.querySelector<HTMLDetailsElement>("header.top details");
menu?.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  menu.open = false;
  menu.querySelector("summary")?.focus();
});
for (const type of ["click", "focusin"]) {
  document.addEventListener(type, (event) => {
    if (menu && event.target instanceof Node && !menu.contains(event.target)) menu.open = false;
  });
}

for (const figure of document.querySelectorAll<HTMLElement>("figure:has(.mark), table:has(.mark)")) {
  for (const svg of figure.querySelectorAll("figure > svg")) svg.setAttribute("tabindex", "0"); // a table's numbers are in its cells
  const begin = () => {
    for (const event of ["pointerover", "focusin"]) figure.removeEventListener(event, begin);
    tell(figure);
  };
  for (const event of ["pointerover", "focusin"]) figure.addEventListener(event, begin);
  // The narrow drawing's marks say what those of the wide one do, in their order.
  const said = figure.querySelectorAll("figure > svg.wide .mark");
  for (const [at, mark] of figure.querySelectorAll("figure > svg.narrow .mark").entries()) {
    mark.setAttribute("role", "img");
    mark.setAttribute("aria-label", said[at]?.getAttribute("aria-label") ?? "");
  }
  const files = figure.querySelector(".chart-files");
  for (const [words, type, content] of [["CSV", "text/csv", rowsOf], ["SVG", "image/svg+xml", pictureOf]] as const) {
    const saving = button(words, () => save(`${figure.id}.${words.toLowerCase()}`, type, content(figure)));
    saving.title = `Save this figure as ${words}`;
    files?.append(saving);
  }
}

/** Let a figure or a table say its marks: it begins when a reader first points at it or tabs to it. */
function tell(figure: HTMLElement): void {
  const shown = [...figure.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().width > 0);
  const marks = shown.flatMap((svg) => [...svg.querySelectorAll<SVGElement>(".mark")]);
  let current = -1;

  const say = (at: number) => {
    marks[current]?.classList.remove("told");
    current = at;
    const mark = marks[at];
    if (!mark) return told.remove();
    document.body.append(told);
    mark.classList.add("told");
    told.textContent = mark.getAttribute("aria-label");
    const { left, width, top } = mark.getBoundingClientRect();
    const middle = left + width / 2 - told.offsetWidth / 2;
    told.style.left = `${Math.max(0, Math.min(middle, document.body.clientWidth - told.offsetWidth))}px`;
    told.style.top = `${top - told.offsetHeight - 8}px`;
  };
  const nearest = (event: PointerEvent) => {
    let [best, found] = [24, -1];
    for (const [at, mark] of marks.entries()) {
      const { left, right, top, bottom } = mark.getBoundingClientRect();
      const dx = Math.max(left - event.clientX, 0, event.clientX - right);
      const dy = Math.max(top - event.clientY, 0, event.clientY - bottom);
      const away = Math.hypot(dx, dy) + (mark.matches(".line") ? 8 : 0);
      if (away < best) [best, found] = [away, at];
    }
    return found;
  };
  figure.addEventListener("pointermove", (event) => say(nearest(event)));
  figure.addEventListener("pointerleave", () => say(-1));
  figure.addEventListener("focusout", () => say(-1));
  figure.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") say(-1);
    if (!step || !marks.length) return;
    event.preventDefault();
    say((current + step + marks.length) % marks.length);
  });
}

/** A figure's rows as CSV, each once although it is drawn for two widths. */
function rowsOf(figure: HTMLElement): string {
  const marks = figure.querySelectorAll("svg.drawing:first-of-type .mark[data-row]");
  const rows = new Set([...marks].map((mark) => mark.getAttribute("data-row"))); // panels share them
  return [figure.dataset["columns"] ?? "", ...rows, ""].join("\n");
}

/** Its drawing as a file of its own, with the colours of the page as it is. */
function pictureOf(figure: HTMLElement): string {
  const svg = figure.querySelector("svg.drawing:first-of-type");
  if (!svg) return "";
  const copy = svg.cloneNode(true) as SVGSVGElement;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  // A page in a folder may not read its own style sheet, but what each element looks like.
  const parts = svg.querySelectorAll("*");
  for (const [at, part] of copy.querySelectorAll<SVGElement>("*").entries()) {
    for (const name of LOOKS) part.style.setProperty(name, getComputedStyle(parts[at]!).getPropertyValue(name));
  }
  return new XMLSerializer().serializeToString(copy);
}
