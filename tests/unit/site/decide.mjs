// Runs the site's script `decide` without a browser: `node decide.mjs BUNDLE`, a JSON document on stdin.
//
// {"site", "pages": [{"said", "choice", "change", "row"}], "tests": [{"test", "names"}]}  ->  {"pages": [...], "tests": [...]}
//
// `site` is a folder with the scripts of registers and registrations. `change` replaces parts of the document that is
// decided on; `row` sets values of the first row of a register that has others.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runInThisContext } from "node:vm";

const asked = JSON.parse(readFileSync(0, "utf8"));

// What the script asks of a page: to load other scripts, which the registers are, and nothing else.
class Script {
  src = `file://${asked.site}/site.js`;
}
globalThis.HTMLScriptElement = Script;
const append = (script) => {
  try {
    runInThisContext(readFileSync(fileURLToPath(script.src), "utf8"));
    script.onload();
  } catch {
    script.onerror();
  }
};
globalThis.document = {
  querySelector: () => new Script(),
  querySelectorAll: () => [],
  createElement: () => new Script(),
  head: { append },
};
for (const script of [process.argv[2].replace(/[^/]+$/, "parquet.js"), process.argv[2]])
  runInThisContext(readFileSync(script, "utf8"));
const { Chain, redecide, parse, evaluate, readValue, writeValue } = globalThis.toolkitDecide;

function merged(there, change) {
  for (const [name, value] of Object.entries(change ?? {}))
    if (value && typeof value === "object" && there[name]) merged(there[name], value);
    else there[name] = value;
}

async function page({ said, choice, change, row }) {
  const { evidence } = await new Chain(said, document).read();
  merged(evidence.document, change);
  if (row) {
    const has = (one) => Object.entries(row.where).every(([name, value]) => one[name] === value);
    Object.assign(evidence.rows.get(row.of).find(has), row.set);
  }
  const chosen = choice.seed ? { seed: BigInt(choice.seed), resamples: choice.resamples } : {};
  const { outcome, intervals, disagreements } = await redecide(evidence, chosen);
  return {
    verdict: outcome.verdict,
    original_verdict: outcome.originalVerdict,
    evidence: outcome.evidence,
    readings: outcome.readings,
    estimate: writeValue(outcome.estimate),
    close_calls: outcome.closeCalls,
    criteria: outcome.criteria.map(({ criterion, value, holds }) => ({
      id: criterion.id,
      value: writeValue(value),
      holds: writeValue(holds),
    })),
    intervals: Object.fromEntries(
      [...intervals].map(([name, one]) => [
        name,
        "reasons" in one
          ? { missing: one.reasons }
          : {
              low: one.low.toFraction(),
              high: one.high.toFraction(),
              errors: one.errors?.map((error) => error.toFraction()) ?? null,
              counted: one.from && [one.from.counted.successes, one.from.counted.episodes],
            },
      ]),
    ),
    disagreements: disagreements.map(({ text }) => text),
    rules: evidence.document.rules,
    by_chance: disagreements.map(({ byChance }) => byChance),
  };
}

function test({ test, names }) {
  return writeValue(evaluate(parse(test), (role, name) => readValue(names[`${role} ${name}`])));
}

async function tried(work) {
  try {
    return await work();
  } catch (error) {
    return { error: error.message };
  }
}

const answer = { pages: [], tests: [] };
for (const one of asked.pages ?? []) answer.pages.push(await tried(() => page(one)));
for (const one of asked.tests ?? []) answer.tests.push(await tried(() => test(one)));
process.stdout.write(JSON.stringify(answer));
