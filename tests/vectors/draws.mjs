// An independent reading of the draw and of the derived seeds: node:crypto and nothing of the package.
//
//     node draws.mjs [vectors.json]
//
// Checks every vector, prints one line, and ends with 1 where any differs or any kind of vector is missing.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const LIMIT = 1n << 64n;

function eight(number) {
  const whole = BigInt(number);
  if (whole < 0n || whole >= LIMIT) throw new RangeError(`${whole} is not in [0, 2^64)`);
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(whole);
  return bytes;
}

function field(value) {
  const isText = typeof value === "string";
  const payload = isText ? Buffer.from(value.normalize("NFC"), "utf8") : eight(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(payload.length);
  return Buffer.concat([Buffer.from(isText ? "s" : "i"), length, payload]);
}

function hash(domain, seed, ...parts) {
  const start = Buffer.from(`${domain}\0`, "utf8");
  return createHash("sha256").update(Buffer.concat([start, eight(seed), ...parts])).digest();
}

const derived = (domain, seed, ...fields) =>
  hash(domain, seed, ...fields.map(field)).readBigUInt64BE(0);

// Texts of digits among the arguments are seeds too large for a JSON number.
const SEEDS = {
  run_seed: ({ study, seed }) => derived("run/v1", seed, study),
  row_seed: ({ run, step, position }) => derived("row/v1", run, step, position),
  slot_seed: ({ row, slot }) => derived("slot/v1", row, slot),
  group_seed: ({ seed, step, task, repeat }) => derived("group/v1", seed, step, task, repeat),
  evaluation_seed: ({ task_id, schedule }) => derived("evaluation/v1", schedule, task_id),
  order_seed: ({ run, epoch }) => derived("order/v1", run, epoch),
  sampling_seed: ({ study, run_id, seed }) => derived("sampling/v1", seed, study, run_id),
  rollout_seed: ({ sampling, step, position, slot }) =>
    derived("rollout/v1", sampling, step, position, slot),
  regroup_seed: ({ root, design, task }) => derived("regroup/v1", task, root, design),
  sample_seed: ({ sampling, step, name, episode }) =>
    derived("sample/v1", sampling, step, name, ...episode),
  shared_seed: ({ study, name, episode: [task, schedule, slot] }) =>
    derived("shared/v1", schedule, study, name, task, slot),
  decision_seed: ({ shared }) => derived("decision/v1", shared),
  surface_seed: ({ shared }) => derived("surface/v1", shared),
  drift_seed: ({ name, design = null }) => derived("drift/v1", 0, name, ...(design === null ? [] : [design])),
  turn_seed: ({ sample, turn }) => derived("turn/v1", sample, turn),
  world_seed: ({ pool, candidate }) => derived("world/v1", candidate, pool),
};

function draw({ seed, key }) {
  const digest = hash("noise/v1", seed, ...key.map(field));
  const unit = (at) => Number(digest.readBigUInt64BE(at) >> 11n) * 2 ** -53;
  return { digest: digest.toString("hex"), gate: unit(0), type: unit(8), magnitude: unit(16) };
}

function words(seed, count) {
  const found = [];
  for (let block = 0; found.length < count; block += 1) {
    const digest = hash("stream/v1", seed, eight(block));
    for (let at = 0; at < 32; at += 8) found.push(digest.readBigUInt64BE(at).toString());
  }
  return found.slice(0, count);
}

const path = process.argv[2] ?? new URL("draws.json", import.meta.url);
const vectors = JSON.parse(readFileSync(path, "utf8"));
const different = [];

function check(name, found, expected) {
  if (found !== expected) different.push(`${name}: ${found}, not ${expected}`);
}

for (const vector of vectors.draws) {
  const found = draw(vector);
  for (const part of ["digest", "gate", "type", "magnitude"]) {
    check(`draw ${vector.seed} ${JSON.stringify(vector.key)} ${part}`, found[part], vector[part]);
  }
}
for (const { function: name, arguments: given, result } of vectors.seeds) {
  check(`${name} ${JSON.stringify(given)}`, SEEDS[name](given).toString(), result);
}
for (const { seed, words: expected } of vectors.streams) {
  check(`stream ${seed}`, words(seed, expected.length).join(" "), expected.join(" "));
}
for (const kind of ["draws", "seeds", "streams"]) {
  if (vectors[kind].length === 0) different.push(`${kind}: no vector`);
}

const counts = `${vectors.draws.length} draws, ${vectors.seeds.length} seeds, ${vectors.streams.length} streams`;
console.log(different.length === 0 ? `equal: ${counts}` : `different: ${different.join("; ")}`);
process.exitCode = different.length === 0 ? 0 : 1;
