// Bundles each entry. PKI.js and asn1js write their classes so that no bundler can tell the unused ones from the
// others; a class that is the value of a call marked pure can be left out.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const CLASS = /^(var \w+ = )(class [\s\S]*?^\});$/gm;
const droppable = {
  name: "droppable-classes",
  setup({ onLoad }) {
    onLoad({ filter: /node_modules\/(pkijs|asn1js)\/build\/index\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replace(CLASS, "$1/* @__PURE__ */ (() => $2)();"),
    }));
  },
};
const bundle = (folder, entries, outdir) =>
  build({
    entryPoints: entries.map((name) => `${folder}/${name}.ts`),
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    outdir,
    plugins: [droppable],
    metafile: true,
  });
const whole = await bundle("src", ["site", "decide", "episodes", "search", "tokens", "parquet"], "../assets");
await bundle("../exhibits/browser", ["theory", "world"], "../exhibits/assets");

// Whoever passes the bundles on passes their authors' licences on.
const inputs = Object.values(whole.metafile.outputs).flatMap((output) => Object.keys(output.inputs));
const packages = [...new Set(inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean))].sort();
const licences = packages.map((name) => {
  const folder = `node_modules/${name}`;
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  return `${name}\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
});
writeFileSync("../assets/licences.txt", licences.join("\n\n"));
