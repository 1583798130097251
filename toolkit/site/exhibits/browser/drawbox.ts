/** The draw box: an event's draw, and what it means in every regime. */

import { type Draw, type Rules, draw, fault, retryAfter } from "./draw";
import { block, bodyOf, element, make, messageOf, tableOf } from "../../browser/src/page";

const GRADER = "grader";

/** Bring the draw box to life; its markup is the template `draw.html`. */
export function mountDraw(container: HTMLElement): void {
  const rules = block<Rules>("script.draw-rules", container);
  const form = element("form", HTMLFormElement, container);
  const status = element("[role=status]", HTMLElement, container);
  const output = element(".drawn", HTMLElement, container);
  const tool = element("select[name=tool]", HTMLSelectElement, form);
  const [seed, resource, repeat] = ["seed", "resource", "repeat"].map((name) =>
    element(`input[name=${name}]`, HTMLInputElement, form),
  ) as [HTMLInputElement, HTMLInputElement, HTMLInputElement];
  let asked = 0;

  const show = async (): Promise<void> => {
    const mine = (asked += 1);
    const isGrader = tool.value === GRADER;
    const isAny = rules.tools[tool.value]?.resource === null;
    resource.disabled = isGrader || isAny;
    repeat.disabled = isGrader;
    try {
      const times = isGrader ? 0n : whole(repeat.value, "repeat index");
      const key = isGrader ? [GRADER] : [tool.value, isAny ? rules.any_resource : resource.value, times];
      const drawn = await draw(whole(seed.value, "seed"), key);
      if (mine !== asked) return; // typed on meanwhile
      status.textContent = "";
      status.classList.remove("wrong");
      output.replaceChildren(numbers(drawn), isGrader ? flips(rules, drawn) : faults(rules, tool.value, times, drawn));
    } catch (error) {
      if (mine !== asked) return;
      output.replaceChildren();
      status.classList.add("wrong");
      status.textContent = messageOf(error);
    }
  };
  form.addEventListener("input", () => void show());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void show();
  });
  if (!(globalThis.crypto as Crypto | undefined)?.subtle) {
    status.textContent = "This browser offers no SHA-256 on a page from this address; open the page from a folder or over https.";
    return;
  }
  form.hidden = false;
  void show();
}

/** A whole number in [0, 2^64), in decimal or after 0x in hexadecimal. */
function whole(text: string, what: string): bigint {
  const said = text.trim();
  if (!/^(0x[0-9a-f]{1,20}|[0-9]{1,25})$/i.test(said)) throw new Error(`The ${what} is a whole number from 0 to 2^64 - 1.`);
  const number = BigInt(said);
  if (number >= 1n << 64n) throw new Error(`The ${what} is a whole number from 0 to 2^64 - 1.`);
  return number;
}

function numbers(drawn: Draw): HTMLElement {
  const pairs = [
    ["SHA-256", drawn.digest, "all 32 bytes"],
    ["gate", String(drawn.gate), "below the fault rate, a fault happens"],
    ["type", String(drawn.type), "which type it is"],
    ["magnitude", String(drawn.magnitude), "how strong it is"],
  ] as const;
  return make("dl", {
    children: pairs.flatMap(([name, value, about]) => [
      make("dt", { text: name }),
      make("dd", { children: [make("code", { text: value }), make("small", { text: ` ${about}` })] }),
    ]),
  });
}

function faults(rules: Rules, tool: string, repeat: bigint, drawn: Draw): HTMLElement {
  return table(
    rules.regimes
      .filter((regime) => regime.weights !== null || regime.challenge)
      .map((regime) => {
        const met = fault(rules, regime, tool, repeat, drawn);
        const seconds = met === "rate_limit" ? ` Here: ${retryAfter(rules, drawn)} s.` : "";
        return [regime.name, regime.about, met ?? "no fault", met === null ? "" : `${rules.about[met] ?? ""}${seconds}`];
      }),
  );
}

function flips(rules: Rules, drawn: Draw): HTMLElement {
  return table(
    rules.regimes
      .filter((regime) => regime.flip_rate > 0)
      .map((regime) => {
        const flipped = drawn.gate < regime.flip_rate;
        return [regime.name, regime.about, flipped ? "flip" : "no flip", flipped ? "A success is graded a failure." : ""];
      }),
  );
}

function table(rows: string[][]): HTMLElement {
  const named = rows.map(([regime = "", ...rest]) => {
    const head = make("th", { text: regime });
    head.scope = "row";
    return [head, ...rest];
  });
  return tableOf(["Regime", "Noise", "It meets", "What happens"], bodyOf(named), "What the draw means");
}
