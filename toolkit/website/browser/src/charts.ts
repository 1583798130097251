/** Draws a chart's specification in place of its drawing, with what it shows at the pointer and at the keyboard. */

import { type Spec, View, parse } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { type TopLevelSpec, compile } from "vega-lite";
import { explore } from "./explore";

window.drawChart = async (plot, specification) => {
  const drawn = plot.querySelector("svg");
  const holder = document.createElement("div");
  // Expressions are interpreted: the page's policy allows no code made from text.
  const view = new View(parse(compile(specification as TopLevelSpec).spec as Spec, undefined, { ast: true }), {
    renderer: "svg",
    container: holder,
    hover: false,
    expr: expressionInterpreter,
  });
  view.tooltip(() => undefined); // the page shows its own
  await view.runAsync();
  const svg = holder.querySelector("svg");
  if (!svg) return;
  svg.setAttribute("role", "img");
  // The same size as the drawing that it replaces, whatever this browser's fonts measure: nothing on the page moves.
  for (const name of ["width", "height", "viewBox", "class"]) {
    const value = drawn?.getAttribute(name);
    if (value) svg.setAttribute(name, value);
  }
  svg.style.removeProperty("vertical-align");
  for (const words of [...(drawn?.querySelectorAll(":scope > title, :scope > desc") ?? [])].reverse()) svg.prepend(words);
  plot.replaceChildren(svg);
  explore(plot, svg);
};
