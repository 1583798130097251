/** What a drawing says at a mark: at the pointer, and at the keyboard from mark to mark. */

import { make } from "./page";

const GAP = 12;
const FRAME = ".role-axis, .role-legend, .role-title"; // named by Vega, and no marks
const FAINT = "0.25";

/** Let readers ask a drawing's marks. */
export function explore(plot: HTMLElement, svg: SVGSVGElement): void {
  const marks = [...svg.querySelectorAll<SVGGraphicsElement>("[role='graphics-symbol'][aria-label]")].filter(
    (mark) => !mark.closest(FRAME),
  );
  if (!marks.length) return;
  const note = make("div", { class: "tooltip" });
  note.setAttribute("role", "status");
  note.hidden = true;
  plot.append(note);
  let at = -1;

  const hide = (): void => {
    note.hidden = true;
    emphasize(marks, null);
  };
  const show = (mark: SVGGraphicsElement, x: number, y: number): void => {
    note.replaceChildren(...parts(mark).map((text) => make("div", { text })));
    note.hidden = false;
    const frame = plot.getBoundingClientRect();
    const [left, top] = [x - frame.left, y - frame.top];
    note.style.left = `${Math.max(0, Math.min(left + GAP, frame.width - note.offsetWidth))}px`;
    note.style.top = `${top - note.offsetHeight - GAP < 0 ? top + GAP : top - note.offsetHeight - GAP}px`;
    emphasize(marks, mark);
  };
  const step = (to: number): void => {
    at = (to + marks.length) % marks.length;
    const mark = marks[at];
    if (!mark) return;
    const box = mark.getBoundingClientRect();
    show(mark, box.left + box.width / 2, box.top + box.height / 2);
  };

  svg.addEventListener("pointermove", (event) => {
    const mark = event.target instanceof Element ? marks.find((known) => known.contains(event.target as Element)) : undefined;
    if (mark) show(mark, event.clientX, event.clientY);
    else hide();
  });
  svg.addEventListener("pointerleave", hide);
  svg.tabIndex = 0;
  svg.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight Escape");
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (move !== undefined) step(at < 0 && move < 0 ? marks.length - 1 : at + move);
    else if (event.key === "Escape") hide();
    else return;
    event.preventDefault();
  });
  svg.addEventListener("blur", hide);
}

/** The parts of what a mark says: Vega writes "step: 20; true success: 0.61; arm: paired". */
function parts(mark: Element): string[] {
  const said = (mark.getAttribute("aria-label") ?? "").split("; ");
  // Of a line Vega says the numbers of its first point: they are not those at the pointer.
  const isLine = mark.getAttribute("aria-roledescription") === "line mark";
  const named = isLine ? said.filter((part) => !/: [+\u2212-]?[\d.,]+%?$/.test(part)) : said;
  return named.length ? named : said;
}

/** Show a mark and those of its colour, and let the others stand back; without one, all of them alike. */
function emphasize(marks: SVGGraphicsElement[], chosen: SVGGraphicsElement | null): void {
  const colour = chosen && colourOf(chosen);
  for (const mark of marks) mark.style.opacity = colour && colourOf(mark) !== colour ? FAINT : "";
}

function colourOf(mark: Element): string {
  const worn = (name: string): string | null => {
    const value = mark.getAttribute(name);
    return value && value !== "transparent" && value !== "none" ? value : null;
  };
  return worn("stroke") ?? worn("fill") ?? "";
}
