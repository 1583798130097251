/** The bandit live: sliders, the numbers, and both variances over the flip rate. */

import { type Bandit, type ByDesign, bandit, binomial, spurious } from "./bandit";
import { type Line, lineChart } from "./linechart";
import { element, make } from "../../browser/src/page";

const STEPS = 60;

function start(box: HTMLElement): void {
  const form = element("form", HTMLFormElement, box);
  const finding = element(".finding", HTMLElement, box);
  const live = element(".live", HTMLElement, box);
  const numbers = element(".numbers", HTMLElement, box);
  const largest = Number(box.dataset["largestFlipRate"]);
  const slider = (name: string): number => element(`input[name=${name}]`, HTMLInputElement, form).valueAsNumber;

  const show = (): void => {
    const [logit, size, rate] = [slider("logit"), slider("size"), slider("rate")];
    const standardized = element("input[value=standardized]", HTMLInputElement, form).checked;
    const moments = (at: Bandit) => (standardized ? at.standardized : at.mean_centred);
    const p = 1 / (1 + Math.exp(-logit));
    const said = [`${logit.toFixed(1)}, success ${percent(p)}`, String(size), rate.toFixed(2)];
    form.querySelectorAll("output").forEach((output, at) => (output.textContent = said[at] ?? ""));

    const now = bandit(logit, size, rate);
    const swept = Array.from({ length: STEPS + 1 }, (_, at) => (at / STEPS) * largest).map((q) => ({
      q,
      at: bandit(logit, size, q),
    }));
    const lines = (of: (at: Bandit) => ByDesign): Line[] =>
      (["independent", "paired"] as const).map((design) => ({
        name: design,
        kind: design,
        points: swept.map(({ q, at }) => [q, of(at)[design]] as const),
        now: [rate, of(now)[design]],
      }));
    const estimator = standardized ? "standardized" : "mean-centred";
    live.replaceChildren(
      lineChart("Variance of a reward contrast", "flip rate q", lines((at) => at.contrast_variance)),
      lineChart(`Variance of the ${estimator} gradient`, "flip rate q", lines((at) => moments(at).trace)),
    );
    finding.textContent = sentence(now.contrast_variance, moments(now).trace);
    numbers.replaceChildren(
      table([
        ["Variance of a reward contrast", now.contrast_variance],
        [`Variance of the ${estimator} gradient`, moments(now).trace],
        ["Length of its mean", moments(now).mean_norm],
      ]),
      make("p", {
        text:
          `L = ${now.clean_norm_squared.toPrecision(4)}, R = ${now.score_spread.toPrecision(4)}: for the mean-centred gradient ` +
          `pairing ${compared(now.clean_norm_squared, now.score_spread)} the variance at any flip rate between 0 and 1. ` +
          `An all-correct group of ${size} is spurious with probability ${spurious(rate, size).toPrecision(3)}, and never when paired.`,
      }),
    );
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  box.hidden = false;
  show();
}

/** What pairing does to both variances, in words. */
function sentence(contrast: ByDesign, trace: ByDesign): string {
  const change = (what: string, { paired, independent }: ByDesign): string => {
    if (same(paired, independent)) return `leaves the variance of ${what} as it is`;
    const to = independent > 0 ? ` to ${(paired / independent).toPrecision(3)} of what it is without` : "";
    return `${compared(paired, independent)} the variance of ${what}${to}`;
  };
  return `Pairing ${change("a reward contrast", contrast)} and ${change("the gradient", trace)}.`;
}

const same = (one: number, other: number): boolean => Math.abs(one - other) <= 1e-12 * Math.max(1, Math.abs(one));
const compared = (one: number, other: number): string =>
  same(one, other) ? "does not change" : one < other ? "lowers" : "raises";
const percent = (value: number): string => `${(100 * value).toFixed(1)}%`;

function table(rows: [string, ByDesign][]): HTMLElement {
  const head = ["Now", "independent", "paired", "paired / independent"].map((text, at) => {
    const cell = make("th", { text, class: at ? "num" : "" });
    cell.scope = "col";
    return cell;
  });
  const body = rows.map(([name, { independent, paired }]) => {
    const label = make("th", { text: name });
    label.scope = "row";
    const ratio = independent > 1e-15 ? (paired / independent).toFixed(3) : "–";
    const cells = [independent.toFixed(6), paired.toFixed(6), ratio].map((text) => make("td", { text, class: "num" }));
    return make("tr", { children: [label, ...cells] });
  });
  const children = [make("thead", { children: [make("tr", { children: head })] }), make("tbody", { children: body })];
  return make("div", { class: "scroll", children: [make("table", { children })] });
}

/** For tests: the same functions, without a page. */
(globalThis as Record<string, unknown>)["toolkitTheory"] = { bandit, binomial, spurious };
if (typeof document !== "undefined") {
  const box = document.getElementById("bandit");
  if (box) start(box);
}
