/** Draws a chart's specification in place of its drawing, with what it shows at the pointer. */

import { type Spec, View, parse } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { type TopLevelSpec, compile } from "vega-lite";

window.drawChart = async (plot, specification) => {
  const drawn = plot.querySelector("svg");
  const holder = document.createElement("div");
  // Expressions are interpreted: the page's policy allows no code made from text.
  const view = new View(parse(compile(specification as TopLevelSpec).spec as Spec, undefined, { ast: true }), {
    renderer: "svg",
    container: holder,
    hover: true,
    expr: expressionInterpreter,
  });
  await view.runAsync();
  const svg = holder.querySelector("svg");
  if (!svg) return;
  svg.setAttribute("role", "img");
  for (const words of drawn?.querySelectorAll(":scope > title, :scope > desc") ?? []) svg.prepend(words);
  plot.replaceChildren(holder);
};
