/** Lists of rows, filled when a reader opens them. */

import type { Evidence } from "./evidence";
import { make, tableOf } from "./page";
import { columnsFor, rowsRead } from "./reading";

const KEY = ["arm", "seed", "run_id", "trajectory", "step"];

/** Let every list of a page fill itself on opening. */
export function fillRows(page: ParentNode, { document, rows }: Evidence): void {
  for (const details of page.querySelectorAll<HTMLDetailsElement>("details[data-endpoint]")) {
    const name = details.dataset["endpoint"] ?? "";
    const endpoint = document.endpoints[name];
    const holder = details.querySelector(".rows-here");
    if (!endpoint || !holder) continue;
    const fill = () => {
      if (!details.open || holder.hasChildNodes()) return;
      const read = rowsRead(name, endpoint, rows);
      const columns = [...KEY, ...columnsFor(endpoint)].filter((column) => read.some((row) => column in row));
      const cells = read.map((row) => columns.map((column) => make("span", { class: "num", text: `${row[column] ?? "–"}` })));
      holder.append(tableOf(columns, cells, `Rows of ${name}`));
    };
    details.addEventListener("toggle", fill);
    fill();
  }
}
