/** On every page: charts say their marks to pointer and keyboard, and are saved as a table or a picture. */

import { pictureOf, rowsOf, tell } from "./marks";
import "./header";
import { make } from "./page";

function save(name: string, type: string, content: string): void {
  const link = document.createElement("a");
  link.download = name;
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

for (const figure of document.querySelectorAll<HTMLElement>("figure:has(.mark), table:has(.mark)")) {
  for (const svg of figure.querySelectorAll("figure > svg")) svg.setAttribute("tabindex", "0"); // a table's numbers are in its cells
  const begin = () => {
    for (const event of ["pointerover", "focusin"]) figure.removeEventListener(event, begin);
    tell(figure);
  };
  for (const event of ["pointerover", "focusin"]) figure.addEventListener(event, begin);
  const files = figure.querySelector(".chart-files");
  for (const [words, type, content] of [
    ["CSV", "text/csv", rowsOf],
    ["SVG", "image/svg+xml", pictureOf],
  ] as const) {
    const button = make("button", { text: words });
    button.title = `Save this figure as ${words}`;
    button.addEventListener("click", () => save(`${figure.id}.${words.toLowerCase()}`, type, content(figure)));
    files?.append(button);
  }
}
