/** A small line chart in SVG, coloured by the style sheet: for what a reader changes by hand. */

import { make } from "../../browser/src/page";

export interface Line {
  name: string;
  /** Class of its colour. */
  kind: string;
  points: readonly (readonly [number, number])[];
  /** Where the reader is. */
  now: readonly [number, number];
}

const WIDTH = 480;
const HEIGHT = 230;
const LEFT = 58;
const RIGHT = 100; // the lines' names stand there
const TOP = 12;
const BOTTOM = 38;
const APART = 15;
const SPACE = "http://www.w3.org/2000/svg";

/** Draw lines over one axis that starts at zero; the drawing says its numbers in words, too. */
export function lineChart(title: string, axis: string, lines: Line[]): HTMLElement {
  const every = lines.flatMap((line) => line.points);
  const right = Math.max(...every.map(([x]) => x));
  const ticks = niceTicks(Math.max(...every.map(([, y]) => y), 1e-9));
  const top = ticks[ticks.length - 1] ?? 1;
  const at = (x: number): number => LEFT + (x / right) * (WIDTH - LEFT - RIGHT);
  const up = (y: number): number => HEIGHT - BOTTOM - (y / top) * (HEIGHT - TOP - BOTTOM);
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "linechart" });
  const words = lines.map((line) => `${line.name} ${line.now[1].toPrecision(4)}`).join(", ");
  const here = lines[0]?.now[0] ?? 0;
  svg.append(text("title", `${title}: at ${axis} ${here.toFixed(2)}, ${words}`, {}));
  for (const tick of ticks) {
    svg.append(shape("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: up(tick), y2: up(tick), class: "grid" }));
    svg.append(text("text", String(Number(tick.toPrecision(3))), { x: LEFT - 6, y: up(tick) + 4, class: "tick end" }));
  }
  for (const part of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
    const x = part * right;
    svg.append(text("text", String(Number(x.toFixed(2))), { x: at(x), y: HEIGHT - BOTTOM + 16, class: "tick middle" }));
  }
  svg.append(text("text", axis, { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4, class: "tick middle" }));
  svg.append(shape("line", { x1: at(here), x2: at(here), y1: up(0), y2: TOP, class: "here" }));
  const names = spread(lines.map((line) => up(line.points[line.points.length - 1]?.[1] ?? 0)));
  lines.forEach((line, order) => {
    const path = line.points.map(([x, y], i) => `${i ? "L" : "M"}${at(x).toFixed(1)},${up(y).toFixed(1)}`).join("");
    svg.append(shape("path", { d: path, class: `line ${line.kind}` }));
    svg.append(shape("circle", { cx: at(line.now[0]), cy: up(line.now[1]), r: 4.5, class: `dot ${line.kind}` }));
    const name = { x: WIDTH - RIGHT + 8, y: (names[order] ?? 0) + 4, class: `name ${line.kind}` };
    svg.append(text("text", line.name, name));
  });
  return make("figure", { class: "live-chart", children: [make("figcaption", { text: title }), svg] });
}

/** Heights of two names, moved apart where they would cover each other; of any other number as they are. */
function spread(heights: number[]): number[] {
  const [first, second] = heights;
  if (first === undefined || second === undefined || heights.length > 2) return heights;
  const missing = Math.max(0, APART - Math.abs(first - second)) / 2;
  return first <= second ? [first - missing, second + missing] : [first + missing, second - missing];
}

/** Round numbers from zero to above the largest value. */
export function niceTicks(largest: number): number[] {
  const rough = largest / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.ceil(largest / step - 1e-9) + 1 }, (_, i) => i * step);
}

function shape(name: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

function text(name: string, words: string, attributes: Record<string, string | number>): SVGElement {
  const made = shape(name, attributes);
  made.textContent = words;
  return made;
}
