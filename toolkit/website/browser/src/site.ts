/** On every page: the search box and the menu of its head; charts say their marks, and are saved as a table or a picture. */

import { pictureOf, rowsOf, tell } from "./marks";
import { button, load, save } from "./page";

// A search box, whose search is loaded when it is first used, and a menu that folds itself.
const box = document.querySelector<HTMLInputElement>(".search input");
box?.form?.addEventListener("submit", (event) => event.preventDefault());
box?.addEventListener("focus", () => load("search-index.js").then(() => load("search.js")), { once: true });

document.addEventListener("keydown", (event) => {
  const writes = event.target instanceof Element && event.target.closest("input, textarea, select");
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
