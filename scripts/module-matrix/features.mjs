// What a module may be written with: each case is a folder of files, its entry (`tool.ts` unless said), and what the
// entry's default export, called if it is a function, must come to.

/** Packages that cases may import. Some count their evaluations. */
// biome-ignore format: one file a line
export const packages = {
  "node_modules/esm-only/package.json": '{"name":"esm-only","type":"module","exports":{".":{"import":"./index.js"}}}',
  "node_modules/esm-only/index.js": "globalThis.evaluations.esmOnly = (globalThis.evaluations.esmOnly ?? 0) + 1; export const six = 6;",
  "node_modules/esm-await/package.json": '{"name":"esm-await","type":"module","exports":"./index.mjs"}',
  "node_modules/esm-await/index.mjs": "export const seven = await Promise.resolve(7);",
  "node_modules/cjs-dep/package.json": '{"name":"cjs-dep","main":"./lib/main"}',
  "node_modules/cjs-dep/lib/main.js": "globalThis.evaluations.cjsDep = (globalThis.evaluations.cjsDep ?? 0) + 1; module.exports = () => 42; module.exports.six = 6;",
  "node_modules/two-faced/package.json": '{"name":"two-faced","exports":{".":{"import":"./index.mjs","require":"./index.cjs"},"./sub/*":"./sub/*.mjs"}}',
  "node_modules/two-faced/index.mjs": 'export const face = "import";',
  "node_modules/two-faced/index.cjs": 'exports.face = "require";',
  "node_modules/two-faced/sub/seven.mjs": "export default 7;",
  "node_modules/tiny-jsx/package.json": '{"name":"tiny-jsx","type":"module","exports":{"./jsx-runtime":"./jsx-runtime.js"}}',
  "node_modules/tiny-jsx/jsx-runtime.js": 'export const jsx = (type, { children }) => `<${type}>${children ?? ""}</${type}>`; export const jsxs = jsx; export const Fragment = "fragment";',
  "node_modules/react/package.json": '{"name":"react","exports":{"./jsx-runtime":"./jsx-runtime.js"}}',
  "node_modules/react/jsx-runtime.js": 'exports.jsx = (type, { children }) => `react:${type}:${children}`; exports.Fragment = "fragment";',
};

const esm = { "package.json": '{"name":"case","type":"module","imports":{"#six":"./lib/six.ts"},"exports":{"./six":"./lib/six.ts"}}' };
const six = { "lib/six.ts": "export const six: number = 6; export default six;" };
const legacy = { "tsconfig.json": '{"compilerOptions":{"experimentalDecorators":true,"emitDecoratorMetadata":true}}' };
const metadataShim =
  "const known = (v: any) => Array.isArray(v) ? v.map(known).join() : v?.name; (globalThis as any).types = []; const mark: any = () => {}; (Reflect as any).metadata = (k: string, v: any) => () => { (globalThis as any).types.push(k + ' ' + known(v)) };";

// biome-ignore format: one case a line
export const features = [
  { name: "node: modules", files: { ...esm, "tool.ts": 'import { sep } from "node:path"; import fs from "fs"; export default sep.length + typeof fs.readFileSync;' }, expect: "1function" },
  { name: "CommonJS dependency", files: { ...esm, "tool.ts": 'import dep, { six } from "cjs-dep"; export default dep() + six;' }, expect: 48 },
  { name: "ESM-only dependency", files: { ...esm, "tool.ts": 'import { six } from "esm-only"; export default six * 7;' }, expect: 42 },
  { name: "dependency with top-level await", files: { ...esm, "tool.ts": 'import { seven } from "esm-await"; export default seven * 6;' }, expect: 42 },
  { name: "conditional exports, subpath pattern", files: { ...esm, "tool.ts": 'import { face } from "two-faced"; import s from "two-faced/sub/seven"; export default face + s;' }, expect: "import7" },
  { name: "require condition in CommonJS", entry: "tool.cjs", files: { "tool.cjs": 'module.exports = require("two-faced").face;' }, expect: "require" },
  { name: "enum, const enum, namespace", files: { ...esm, "tool.ts": 'import { Size, Flag } from "./enums.js"; namespace N { export const v = 30 } export default N.v + Size.L + Flag.On + Size[2].length;', "enums.ts": "export enum Size { S = 1, L } export const enum Flag { On = 9 }" }, expect: 42 },
  { name: "parameter properties, satisfies, overloads", files: { ...esm, "tool.ts": "class A { constructor(readonly x: number) {} get(): number; get(y?: number) { return this.x } } export default (new A(42) satisfies A).get();" }, expect: 42 },
  { name: "TC39 decorators", files: { ...esm, "tool.ts": "const twice = (f: any, c: ClassMethodDecoratorContext) => c.kind === 'method' ? function (this: any) { return 2 * f.call(this) } : f; class A { @twice m() { return 21 } } export default new A().m();" }, expect: 42 },
  { name: "legacy decorators: class, method, accessor, field, parameter", files: { ...esm, ...legacy, "tool.ts": "const seen: string[] = []; const mark = (n: string) => (t: any, k?: any, i?: any) => { seen.push(n + (k ?? '') + (typeof i === 'number' ? i : '')) }; @mark('c') class A { @mark('f') x: string = 'x'; @mark('u') y!: string; @mark('m') m(@mark('p') q: number) {} @mark('a') get g() { return 1 } @mark('s') static z = 1 } new A(); export default seen.join(' ');" }, expect: "fx uy pm0 mm ag sz c" },
  { name: "legacy decorators: metadata", files: { ...esm, ...legacy, "tool.ts": `${metadataShim} class B {} class A { @mark m(q: B): string { return '' } @mark f!: number } export default (globalThis as any).types;` }, expect: ["design:returntype String","design:paramtypes B","design:type Function","design:type Number"] },
  { name: "legacy decorators: metadata across an import cycle", files: { ...esm, ...legacy, "tool.ts": `${metadataShim} import { B } from "./b.ts"; export class A { @mark b!: B } export default () => (globalThis as any).types;`, "b.ts": `${metadataShim} import { A } from "./tool.ts"; export class B { @mark a!: A }` }, expect: ["design:type B"] },
  { name: "legacy decorators below a top-level await", files: { ...esm, ...legacy, "tool.ts": "const n = await 42; const mark = (t: any) => { t.n = n }; @mark class A {} export default (A as any).n;" }, expect: 42 },
  { name: "using", files: { ...esm, "tool.ts": "let n = 0; function f() { using r = { [Symbol.dispose]() { n += 40 } }; return 2 } const two = f(); export default n + two;" }, expect: 42 },
  { name: "import type", files: { ...esm, "tool.ts": 'import type { T } from "./nowhere.js"; import { type U, six } from "./lib/six.js"; export default ((x: T | U) => six)(1 as any);', "lib/six.ts": "export type U = 1; export const six = 6;" }, expect: 6 },
  { name: "re-exported types", files: { ...esm, "tool.ts": 'import { six } from "./barrel.js"; export default six;', "barrel.ts": 'export { six, T } from "./lib/six.js"; export * from "./lib/more.js";', "lib/six.ts": "export interface T {} export const six = 6;", "lib/more.ts": "export const seven = 7;" }, expect: 6 },
  { name: "JSON with and without attributes", files: { ...esm, "tool.ts": 'import a from "./a.json"; import b from "./a.json" with { type: "json" }; export default async () => a.n + b.n + (await import("./a.json", { with: { type: "json" } })).default.n;', "a.json": '{"n":14}' }, expect: 42 },
  { name: "JSX, automatic runtime of React", entry: "tool.tsx", files: { ...esm, "tool.tsx": "export default <b>{42}</b>;" }, expect: "react:b:42" },
  { name: "JSX, jsxImportSource in tsconfig", entry: "tool.tsx", files: { ...esm, "tsconfig.json": '{"compilerOptions":{"jsx":"react-jsx","jsxImportSource":"tiny-jsx"}}', "tool.tsx": "export default <b>42</b>;" }, expect: "<b>42</b>" },
  { name: "JSX, jsxFactory in tsconfig", entry: "tool.tsx", files: { ...esm, "tsconfig.json": '{"compilerOptions":{"jsx":"react","jsxFactory":"h"}}', "tool.tsx": "const h = (t: string, p: null, c: string) => t + c; export default <b>42</b>;" }, expect: "b42" },
  { name: "JSX, pragma comment", entry: "tool.tsx", files: { ...esm, "tool.tsx": "/** @jsxImportSource tiny-jsx */\nexport default <i>1</i>;" }, expect: "<i>1</i>" },
  { name: "tsconfig paths through extends, with comments", files: { ...esm, ...six, "base.json": '{"compilerOptions":{"baseUrl":".","paths":{"@lib/*":["lib/*"]}}}', "tsconfig.json": `// a comment\n{"extends":"./base.json",}`, "tool.ts": 'import { six } from "@lib/six"; export default six;' }, expect: 6 },
  { name: "tsconfig baseUrl", files: { ...esm, ...six, "tsconfig.json": '{"compilerOptions":{"baseUrl":"."}}', "tool.ts": 'import { six } from "lib/six"; import { six as s } from "esm-only"; export default six + s;' }, expect: 12 },
  { name: "package #imports", files: { ...esm, ...six, "tool.ts": 'import { six } from "#six"; export default six;' }, expect: 6 },
  { name: "self-reference", files: { ...esm, ...six, "tool.ts": 'import { six } from "case/six"; export default six;' }, expect: 6 },
  { name: "no extension, folder index", files: { ...esm, ...six, "lib/index.ts": 'export * from "./six";', "tool.ts": 'import { six as a } from "./lib/six"; import { six as b } from "./lib"; import { six as c } from "./lib/"; export default a + b + c;' }, expect: 18 },
  { name: ".js, .mjs, .cjs meaning .ts, .mts, .cts", files: { ...esm, ...six, "m.mts": "export default 1;", "c.cts": "export = { two: 2 };", "tool.ts": 'import s from "./lib/six.js"; import m from "./m.mjs"; import c from "./c.cjs"; export default s + m + c.two;' }, expect: 9 },
  { name: "import cycle", files: { ...esm, "tool.ts": 'import { b } from "./b.ts"; export function a() { return 21 } export default () => b();', "b.ts": 'import { a } from "./tool.ts"; export const b = () => a() * 2;' }, expect: 42 },
  { name: "live bindings, export *", files: { ...esm, "tool.ts": 'import { n, add } from "./c.ts"; add(); export default () => n;', "c.ts": 'export * from "./d.ts";', "d.ts": "export let n = 41; export const add = () => { n++ };" }, expect: 42 },
  { name: "default and namespace in one import", files: { ...esm, ...six, "tool.ts": 'import s, * as all from "./lib/six.ts"; export default s + all.six;' }, expect: 12 },
  { name: "dynamic import", files: { ...esm, ...six, "tool.ts": 'export default async () => (await import("./lib/" + "six.ts")).six + (await import("esm-only")).six;' }, expect: 12 },
  { name: "top-level await", files: { ...esm, "tool.ts": "const x = await Promise.resolve(42); export default x;" }, expect: 42 },
  { name: "top-level await in a helper", files: { ...esm, "tool.ts": 'import { x } from "./h.ts"; export default x;', "h.ts": "export const x = await Promise.resolve(42);" }, expect: 42 },
  { name: "import.meta", files: { ...esm, ...six, "tool.ts": 'export default [import.meta.url, import.meta.filename, import.meta.dirname].every((x, i) => i ? x.includes("case") : x.startsWith("file:") && x.endsWith("tool.ts")) && import.meta.resolve("./lib/six.ts").endsWith("/lib/six.ts") && import.meta.resolve("esm-only").endsWith("esm-only/index.js");' }, expect: true },
  { name: "require of its own making", files: { ...esm, "c.cjs": "module.exports = 42;", "tool.ts": 'import { createRequire } from "node:module"; export default createRequire(import.meta.url)("./c.cjs");' }, expect: 42 },
  { name: "import x = require() in ESM", files: { ...esm, "tool.ts": 'import path = require("node:path"); export default path.sep.length;' }, expect: 1 },
  { name: "CommonJS entry: require, __dirname, require.resolve", entry: "tool.cjs", files: { "h.cjs": "exports.n = 42;", "tool.cjs": 'const { n } = require("./h"); module.exports = () => require.resolve("./h.cjs").startsWith(__dirname) && __filename.endsWith("tool.cjs") && module.exports.length === 0 ? n : 0;' }, expect: 42 },
  { name: "TypeScript written for CommonJS: import beside require and __dirname", files: { "package.json": '{"name":"case"}', "h.json": '{"n":42}', "tool.ts": 'import { join } from "node:path"; const { n } = require("./h.json"); export default join(__dirname, "tool.ts") === __filename && n;' }, expect: 42 },
  { name: "CommonJS .js without type", entry: "tool.js", files: { "package.json": '{"name":"case"}', "h.js": "module.exports = { n: 42 };", "tool.js": 'module.exports = require("./h").n;' }, expect: 42 },
  { name: "ESM syntax in .js without type", entry: "tool.js", files: { "package.json": '{"name":"case"}', "h.js": "exports.n = 42;", "tool.js": 'import { n } from "./h.js"; export default n;' }, expect: 42 },
  { name: ".cts with import = and export =", entry: "tool.cts", files: { "h.cts": "const n: number = 42; export = { n };", "tool.cts": 'import h = require("./h.cjs"); export = () => h.n;' }, expect: 42 },
  { name: ".cts with ESM syntax", entry: "tool.cts", files: { "h.cts": "export const n: number = 42;", "tool.cts": 'import { n } from "./h.cjs"; export default n;' }, expect: 42 },
  { name: "CommonJS requiring an ES module", entry: "tool.cjs", files: { "h.mjs": "import { six } from 'esm-only'; export const n = six * 7;", "tool.cjs": 'module.exports = require("./h.mjs").n;' }, expect: 42 },
  { name: "names of CommonJS in ESM", files: { ...esm, "h.cjs": "exports.a = 40; exports['b'] = 2;", "tool.ts": 'import h, { a, b } from "./h.cjs"; export default h.a === a ? a + b : 0;' }, expect: 42 },
  { name: "host modules", files: { ...esm, "tool.ts": 'import { ToolError } from "skillhost"; import { kit } from "skillhost/testing"; export default () => new ToolError() instanceof globalThis.hostToolError && kit;' }, expect: "kit" },
  { name: "host modules in CommonJS", entry: "tool.cjs", files: { "tool.cjs": 'const { ToolError } = require("skillhost"); module.exports = () => new ToolError() instanceof globalThis.hostToolError;' }, expect: true },
  { name: "host before an installed namesake", files: { ...esm, "node_modules/skillhost/package.json": '{"name":"skillhost","main":"x.js"}', "node_modules/skillhost/x.js": "exports.ToolError = class {};", "tool.ts": 'import { ToolError } from "skillhost"; export default () => new ToolError() instanceof globalThis.hostToolError;' }, expect: true },
  { name: "skill inside node_modules", entry: "node_modules/a-skill/tool.ts", files: { "node_modules/a-skill/package.json": '{"name":"a-skill","type":"module"}', "node_modules/a-skill/h.ts": "export const n: number = 36;", "node_modules/a-skill/tool.ts": 'import { n } from "./h.js"; import { six } from "esm-only"; export default n + six;' }, expect: 42 },
  { name: "hash-bang, byte order mark, CRLF", files: { ...esm, "tool.ts": "\uFEFF#!/usr/bin/env node\r\nconst x: number = 42;\r\nexport default x;\r\n" }, expect: 42 },
];
