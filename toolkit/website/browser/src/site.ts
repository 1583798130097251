/** On every page: drawings become interactive when they come into view. */

import { block, element, load } from "./page";
import "./header";

declare global {
  interface Window {
    /** Set by the entry `charts`. */
    drawChart?: (plot: HTMLElement, specification: object) => Promise<void>;
  }
}

async function upgrade(figure: Element): Promise<void> {
  await load("charts.js");
  await window.drawChart?.(element(".plot", HTMLElement, figure), block(".specification", figure));
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    seen.unobserve(entry.target);
    upgrade(entry.target).catch((error: unknown) => console.error(error)); // the drawing that is there stays
  }
});
for (const figure of document.querySelectorAll("figure.chart:has(.specification)")) seen.observe(figure);
