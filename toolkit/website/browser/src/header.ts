/** The head of every page: a search box, whose search is loaded when it is first used, and a menu that folds itself. */

import { load } from "./page";

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
for (const type of ["click", "focusin"]) {
  document.addEventListener(type, (event) => {
    if (menu && event.target instanceof Node && !menu.contains(event.target)) menu.open = false;
  });
}
