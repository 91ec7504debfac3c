#!/usr/bin/env node
// "npm create skillhost <arguments>" runs "skillhost init <arguments>".
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const manifest = createRequire(import.meta.url).resolve("skillhost/package.json");
const { bin } = JSON.parse(readFileSync(manifest, "utf8"));
process.argv.splice(2, 0, "init");
await import(pathToFileURL(join(dirname(manifest), bin.skillhost)).href);
