/** The search box of every page; what it searches is loaded when it is first used. */

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
