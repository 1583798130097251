/** What the SQL box says where its engine refuses a query: what to write instead, and where else to ask. */

/** What a study has, as the box knows it. */
export interface Held {
  study: string;
  /** Tables that travel with the site. */
  tables: string[];
  /** Tables of the study that do not. */
  leftOut: string[];
}

const USING = /\bUSING\s*\(\s*([\w\s,"]+?)\s*\)/i;
const NO_TABLE = /^Table "([^"]*)" not found(?! in)/; // "in": a name before a dot, which need not be a table

/** The engine's message, or a better one. */
export function explained(message: string, sql: string, held: Held): string {
  const missing = NO_TABLE.exec(message)?.[1];
  if (missing !== undefined) return absent(missing, held);
  const using = USING.exec(sql)?.[1];
  if (using !== undefined && message.startsWith("Expected ON")) {
    const columns = using.split(",").map((name) => name.trim());
    const on = columns.map((name) => `a.${name} = b.${name}`).join(" AND ");
    return `This box does not know JOIN … USING (${columns.join(", ")}): name both tables and write JOIN … ON ${on}.`;
  }
  return message;
}

function absent(table: string, { study, tables, leftOut }: Held): string {
  const known = leftOut.find((name) => name.toLowerCase() === table.toLowerCase());
  if (known !== undefined) {
    return `The table ${known} of ${study} stays with the registers, and does not travel with the site. This asks it: toolkit sql "SELECT * FROM ${known} LIMIT 10" --study ${study}`;
  }
  const elsewhere = leftOut.length ? `; not with the site: ${leftOut.join(", ")}` : "";
  return `The study ${study} has no table ${table}. It has ${tables.join(", ")}${elsewhere}.`;
}
