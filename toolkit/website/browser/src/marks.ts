/** Pointer and keyboard over a chart: its marks say in words what they are, and it says the one that is pointed at. */

const told = document.createElement("output");
told.className = "told";

/** Let a figure or a table say its marks: it begins when a reader first points at it or tabs to it. */
export function tell(figure: HTMLElement): void {
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
export function rowsOf(figure: HTMLElement): string {
  const marks = figure.querySelectorAll("svg.drawing:first-of-type .mark[data-row]");
  const rows = new Set([...marks].map((mark) => mark.getAttribute("data-row"))); // panels share them
  return [figure.dataset["columns"] ?? "", ...rows, ""].join("\n");
}

/** Its drawing as a file of its own, with the colours of the page as it is. */
export function pictureOf(figure: HTMLElement): string {
  const svg = figure.querySelector("svg.drawing:first-of-type");
  if (!svg) return "";
  const copy = svg.cloneNode(true) as SVGSVGElement;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText));
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = rules.filter((rule) => rule.includes(".drawing")).join("\n");
  copy.prepend(style);
  return new XMLSerializer().serializeToString(copy);
}
