// Runs the site's script `decide` without a browser: `node decide.mjs BUNDLE`, a JSON document on stdin.
//
// {"pages": [{"document", "files", "choice"}], "tests": [{"test", "names"}]}  ->  {"pages": [...], "tests": [...]}

import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

// What the script asks of a page before it finds nothing to do on it.
globalThis.HTMLScriptElement = class {
  src = "file:///site.js";
};
globalThis.document = { querySelector: () => new HTMLScriptElement(), querySelectorAll: () => [] };
runInThisContext(readFileSync(process.argv[2], "utf8"));
const { unpack, redecide, parse, evaluate, readValue, writeValue } = globalThis.toolkitDecide;

async function page({ document, files, choice }) {
  const evidence = await unpack(document, files);
  const chosen = choice && { seed: BigInt(choice.seed), resamples: choice.resamples };
  const { outcome, intervals, disagreements } = await redecide(evidence, chosen ?? {});
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
              low: `${one.low}`,
              high: `${one.high}`,
              errors: one.errors?.map(String) ?? null,
              counted: one.from && [one.from.counted.successes, one.from.counted.episodes],
            },
      ]),
    ),
    disagreements: disagreements.map(({ text }) => text),
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

const asked = JSON.parse(readFileSync(0, "utf8"));
const answer = { pages: [], tests: [] };
for (const one of asked.pages ?? []) answer.pages.push(await tried(() => page(one)));
for (const one of asked.tests ?? []) answer.tests.push(await tried(() => test(one)));
process.stdout.write(JSON.stringify(answer));
