/** On a registration's page: verifies its tokens here, and says of a file whether it is a registered one. */

import { type Verified, verifyTokens } from "./authorities";
import { sha256 } from "./bytes";
import { element, make, messageOf } from "./page";
import { Registration } from "./registration";
import { verifyToken } from "./timestamp";

declare global {
  var verifyTokens: (registration: string) => Promise<Verified[]>;
  /** For whoever wants to check it: a test, or a reader at the console. */
  var toolkitTokens: object;
}
globalThis.verifyTokens = verifyTokens;
globalThis.toolkitTokens = { verifyToken };

const MARKS = { true: ["verified", "good"], false: ["refused", "bad"], null: ["not known", "mixed"] } as const;

async function tick(section: HTMLElement, registration: string): Promise<void> {
  const list = element("ul", HTMLUListElement, section);
  const state = element("[role=status]", HTMLElement, section);
  const row = ({ ok, says }: Pick<Verified, "ok" | "says">) => {
    const [text, kind] = MARKS[`${ok}`];
    return make("li", { children: [make("span", { class: `verdict ${kind}`, text }), ` ${says}`] });
  };
  try {
    const answers = await verifyTokens(registration);
    const good = answers.filter(({ ok }) => ok).length;
    list.replaceChildren(...answers.map(row));
    state.textContent = `Your browser verified ${good} of ${answers.length} tokens just now.`;
    const left = new Set(answers.map((one) => one.notChecked).filter(Boolean));
    if (left.size) element(".unchecked small", HTMLElement, section).textContent = [...left].join(" ");
  } catch (error) {
    list.replaceChildren(row({ ok: false, says: messageOf(error) }));
    state.textContent = "Your browser could not verify the tokens.";
  }
}

/** What can be said of a file that somebody holds. */
async function compare(file: File, registration: string, document: string): Promise<[boolean, string]> {
  const found = await sha256(new Uint8Array(await file.arrayBuffer()));
  const { files } = await Registration.load(registration);
  const known = await Promise.all([...files].map(async ([name, bytes]) => [name, await sha256(bytes)] as const));
  const same = known.filter(([, hash]) => hash === found).map(([name]) => name);
  if (found === document && !same.length) same.push("the document that was frozen");
  const told = `SHA-256 ${found}`;
  if (same.length) return [true, `${file.name} is, byte for byte, ${same.join(" and ")} of this registration (${told}).`];
  const [place, hash] = known.find(([name]) => name.split("/").pop() === file.name) ?? [];
  if (place) return [false, `${file.name} is not the registered ${place}: its ${told}, expected ${hash}.`];
  return [false, `${file.name} is none of the ${known.length} registered files (${told}).`];
}

function takeFiles(section: HTMLElement, registration: string): void {
  const answer = element("[role=status]", HTMLElement, section);
  const input = element("input[type=file]", HTMLInputElement, section);
  const take = async (file: File | undefined) => {
    if (!file) return;
    const [isOne, words] = await compare(file, registration, section.dataset["document"] ?? "");
    const [text, kind] = isOne ? ["registered", "good"] : ["not registered", "bad"];
    answer.replaceChildren(make("span", { class: `verdict ${kind}`, text }), ` ${words}`);
    section.scrollIntoView({ block: "nearest" });
  };
  const tried = (file: File | undefined) => take(file).catch((error: unknown) => (answer.textContent = String(error)));
  input.addEventListener("change", () => void tried(input.files?.[0]));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    void tried(event.dataTransfer?.files[0]);
  });
  section.hidden = false;
}

const section = document.querySelector<HTMLElement>("section.tokens");
if (section) {
  const registration = section.dataset["registration"] ?? "";
  void tick(section, registration);
  takeFiles(element(".holding", HTMLElement), registration);
}
