/** For each rule, code that it must report (each once at least) and code that it must leave alone. */
export interface RuleCases {
  readonly bad: readonly string[];
  readonly good: readonly string[];
  /** The name to check the code under, where the rule looks at it. */
  readonly path?: string;
}

export const lintCases: Readonly<Record<string, RuleCases>> = {
  "floating-promise": {
    bad: [
      "async function save() {} export function f() { save(); }",
      "const load = async () => 1; export function f() { load(); }",
      "export class Store { async write() {} close() { this.write(); } }",
      "export class Store { async #flush() {} close() { this.#flush(); } }",
      "class Job { async run() {} } const job = new Job(); export function go() { job.run(); }",
      'import { writeFile } from "node:fs/promises"; export function f() { writeFile("a", "b"); }',
      'import * as fs from "node:fs/promises"; export function f() { fs.rm("a"); }',
      "export function f(p: Promise<number>) { p.then((n) => n + 1); }",
      "export function f() { Promise.all([1]); }",
      'export function f() { fetch("https://example.org/"); }',
      "function wait(): Promise<void> { return new Promise(() => {}); } export function f() { wait(); }",
      'export function f(p: unknown) { expect(p).rejects.toThrow("x"); }',
      "const api = { async get() {} }; export function f() { api.get(); }",
    ],
    good: [
      "async function save() {} export async function f() { await save(); }",
      "async function save() {} export function f() { void save(); }",
      "async function save() {} export function f() { save().catch(report); } function report(e: unknown) { throw e; }",
      "async function save() {} export function f() { return save(); }",
      "export class Store { async write() {} close() { this.read(); } read() {} }",
      "async function save() {} export function f(save: () => void) { save(); }",
      "let go = async () => 1; export function f() { go = other as never; go(); } function other() {}",
      "export function f(chain: { then(x: number): void }) { chain.then(1); }",
      'import { writeFile } from "node:fs"; export function f() { writeFile("a", "b", () => {}); }',
      "export function f(p: Promise<number>) { p.then((n) => n + 1, report); } function report() {}",
      "export async function f(p: unknown) { await expect(p).rejects.toThrow(); }",
    ],
  },
  "promise-in-condition": {
    bad: [
      "async function isReady() { return true; } export function f() { if (isReady()) return 1; return 2; }",
      "async function isReady() { return true; } export function f() { return !isReady() ? 1 : 2; }",
    ],
    good: [
      "async function isReady() { return true; } export async function f() { if (await isReady()) return 1; return 2; }",
      "export const f = (isReady: () => boolean) => { if (isReady()) return 1; return 2; }",
    ],
  },
  "async-promise-executor": {
    bad: ["export const p = new Promise(async (resolve) => { resolve(await 1); });"],
    good: ["export const p = new Promise((resolve) => { resolve(1); });"],
  },
  "async-array-callback": {
    bad: [
      "export function f(list: string[]) { list.forEach(async (item) => { await send(item); }); } declare function send(x: string): Promise<void>;",
      "export const f = (list: string[]) => list.filter(async (item) => check(item)); declare function check(x: string): Promise<boolean>;",
    ],
    good: [
      "export const f = (list: string[]) => Promise.all(list.map(async (item) => item));",
      "export const f = async (stream: any) => { await stream.forEach(async (x: string) => { await x; }); };",
    ],
  },
  "promise-all-misuse": {
    bad: [
      "export const f = (a: Promise<1>, b: Promise<2>) => Promise.all(a as never, b);",
      "export const f = async (a: () => 1, b: () => 2) => Promise.all([await a(), await b()]);",
    ],
    good: [
      "export const f = (a: Promise<1>, b: Promise<2>) => Promise.all([a, b]);",
      "export const f = async (a: () => 1) => Promise.race([await a()]);",
    ],
  },
  "unawaited-return-in-try": {
    bad: [
      "async function load() {} export async function f() { try { return load(); } catch (e) { return e; } }",
      "async function load() {} export async function f() { try { return load(); } finally { release(); } } function release() {}",
    ],
    good: [
      "async function load() {} export async function f() { try { return await load(); } catch (e) { return e; } }",
      "async function load() {} export async function f() { try { prepare(); } catch (e) { return load(); } } function prepare() {}",
      "async function load() {} export async function f() { try { return () => load(); } catch (e) { return e; } }",
      "async function load() {} export function f() { try { return load(); } catch (e) { return e; } }",
    ],
  },
  "await-in-loop": {
    bad: [
      "export async function f(urls: string[]) { const all = []; for (const url of urls) { all.push(await get(url)); } return all; } declare function get(u: string): Promise<string>;",
      "export async function f(ids: string[], found: Map<string, string>) { for (const id of ids) { const one = await get(id); found.set(id, one); } } declare function get(u: string): Promise<string>;",
    ],
    good: [
      "export async function f(urls: string[]) { for (const url of urls) { await get(url); } } declare function get(u: string): Promise<string>;",
      "export async function f(urls: string[]) { let last = ''; for (const url of urls) { last = await get(url + last); } return last; } declare function get(u: string): Promise<string>;",
      "export async function f(urls: string[]) { const all: string[] = []; for (const url of urls) { if (all.includes(url)) break; all.push(await get(url)); } return all; } declare function get(u: string): Promise<string>;",
    ],
  },
  "loop-runs-once": {
    bad: [
      "export function f(list: number[]) { for (let i = 0; i < list.length; i++) { if (list[i] === 1) return true; else return false; } }",
    ],
    good: [
      "export function f(list: number[]) { for (let i = 0; i < list.length; i++) { if (list[i] === 1) return true; } return false; }",
      "export function f(list: number[]) { for (let i = 0; i < list.length; i++) { if (list[i] === 1) continue; return i; } return -1; }",
    ],
  },
  "loop-direction": {
    bad: [
      "for (let i = 0; i < 10; i--) run(i); declare function run(i: number): void; export {};",
      "for (let i = 10; i >= 0; i += 2) run(i); declare function run(i: number): void; export {};",
    ],
    good: [
      "for (let i = 0; i < 10; i += 2) run(i); for (let j = 10; j > 0; j--) run(j); declare function run(i: number): void; export {};",
    ],
  },
  "shadowed-loop-variable": {
    bad: [
      "export function f(a: number[][]) { for (let i = 0; i < 3; i++) { for (let i = 0; i < 3; i++) use(a[i]); } } declare function use(x: unknown): void;",
      "export function f(a) { for (var i = 0; i < 3; i++) { for (var i = 0; i < 2; i++) { a(i); } } }",
    ],
    good: [
      "export function f(a: number[][]) { for (let i = 0; i < 3; i++) use(a[i]); for (let i = 0; i < 3; i++) use(a[i]); } declare function use(x: unknown): void;",
      "export function f(a: any) { for (let i = 0; i < 3; i++) { a(() => { for (let i = 0; i < 2; i++) a(i); }); } }",
    ],
  },
  "var-in-closure": {
    bad: [
      "export function f() { for (var i = 0; i < 3; i++) { setTimeout(() => show(i), 10); } } declare function show(i: number): void;",
      "export function f(el) { for (var k in el) { el[k].addEventListener('x', function () { alert(k); }); } }",
    ],
    good: [
      "export function f() { for (let i = 0; i < 3; i++) { setTimeout(() => show(i), 10); } } declare function show(i: number): void;",
      "export function f(list) { for (var i = 0; i < 3; i++) { list.map((x) => x + i); } }",
    ],
  },
  "loose-equality": {
    bad: ["export const f = (a: unknown, b: unknown) => a == b;", "export const f = (a: unknown) => a != 0;"],
    good: [
      "export const f = (a: unknown) => a == null;",
      "export const f = (a: unknown) => undefined != a;",
      "export const f = (a: unknown) => typeof a == 'string';",
      "export const f = (a: unknown) => a === 0;",
    ],
  },
  "nan-comparison": {
    bad: [
      "export const f = (a: number) => a === NaN;",
      "export const f = (a: number) => Number.NaN !== a;",
      "export const f = (a: number[]) => a.indexOf(NaN);",
      "export function f(a: number) { switch (a) { case NaN: return 1; } return 2; }",
    ],
    good: [
      "export const f = (a: number) => Number.isNaN(a);",
      "export const f = (NaN: number, a: number) => a === NaN;",
      "export const f = (a: number) => a === 1 ? NaN : a;",
    ],
  },
  "invalid-typeof": {
    bad: [
      "export const f = (a: unknown) => typeof a === 'strnig';",
      "export const f = (a: unknown) => 'array' == typeof a;",
      "export const f = (a: unknown) => typeof a === undefined;",
    ],
    good: [
      "export const f = (a: unknown) => typeof a === 'string' || typeof a !== 'undefined';",
      "export const f = (a: unknown, b: unknown) => typeof a === typeof b;",
    ],
  },
  "same-operands": {
    bad: [
      "export const f = (a: { x: number }) => a.x === a.x;",
      "export const f = (a: boolean) => a && a;",
      "export const f = (a: number) => a - a;",
    ],
    good: [
      "export const f = (a: { x: number; y: number }) => a.x === a.y;",
      "export const f = (next: () => number) => next() - next();",
      "export const f = (a: number) => a * a + a;",
      "export const year = 60 * 60 / 60;",
    ],
  },
  "fresh-object-comparison": {
    bad: ["export const f = (a: unknown[]) => a === [];", "export const f = (a: object) => ({}) !== a;"],
    good: [
      "export const f = (a: unknown[]) => a.length === 0;",
      "const none: unknown[] = []; export const f = (a: unknown[]) => a === none;",
    ],
  },
  "chained-comparison": {
    bad: ["export const f = (a: number) => 1 < a < 10;"],
    good: ["export const f = (a: number) => 1 < a && a < 10;", "export const f = (a: number, b: number) => (a < b) === (b < 3);"],
  },
  "negated-operand": {
    bad: [
      "export const f = (a: string, b: object) => !a in b;",
      "export const f = (a: object) => !a instanceof Error;",
      "export const f = (a: string) => !a === 'x';",
    ],
    good: [
      "export const f = (a: string, b: object) => !(a in b);",
      "export const f = (a: unknown, b: unknown) => !a === !b;",
      "export const f = (a: unknown, b: boolean) => !a === b;",
      "export const f = (a: any, b: object) => (!a) in b;",
    ],
  },
  "assignment-in-condition": {
    bad: [
      "export function f(a: number) { if (a = 5) return 1; return a; }",
      "export function f(a: number, b: number) { while (a = b) a--; }",
      "let user = 1; export function f() { if (user = load()) return user; return 0; } declare function load(): number;",
    ],
    good: [
      "export function f(a: number) { if (a === 5) return 1; return a; }",
      "export function f(a: number, b: number) { if ((a = b)) return 1; return a; }",
      "export function f(next: () => string) { let line; while (line = next()) use(line); } declare function use(x: unknown): void;",
      "export function f(re: RegExp, s: string) { let match; if (match = re.exec(s)) return match[0]; return s; }",
    ],
  },
  "constant-condition": {
    bad: [
      "export function f(x: string) { if (x === 'a' || 'b') return 1; return 2; }",
      "export const f = (n: number) => ('n: ' + n ? 'some' : 'none');",
      "export function f(x: unknown) { while ([] && x) { break; } }",
    ],
    good: [
      "export function f() { while (true) { if (Math.random() > 0.5) break; } }",
      "export function f(x: string) { const y = x || 'b'; if (y) return 1; return 2; }",
      "export function f(x: string) { if (x === 'a' || x === 'b') return 1; return 2; }",
      "export function f() { if (false) { return 1; } return 2; }",
      "export const f = (a: string) => (`${a}` ? 1 : 2);",
    ],
  },
  "index-as-condition": {
    bad: [
      "export function f(s: string) { if (s.indexOf('x')) return 1; return 2; }",
      "export const f = (s: string[]) => (!s.findIndex((x) => x) ? 1 : 2);",
    ],
    good: [
      "export function f(s: string) { if (s.indexOf('x') !== -1) return 1; return 2; }",
      "export function f(s: string) { if (s.includes('x')) return 1; return s.indexOf('x'); }",
      "export function f(s: string) { if (~s.indexOf('x')) return 1; return 2; }",
    ],
  },
  "useless-fallback": {
    bad: [
      "export const f = (a: number, b?: number) => a + b! ?? 0;",
      "export const f = (a: unknown) => !a ?? true;",
      "export const f = (a: string) => `${a}` ?? 'none';",
    ],
    good: ["export const f = (a: number, b?: number) => a + (b ?? 0);", "export const f = (a?: string) => a?.trim() ?? 'none';"],
  },
  "bitwise-for-logical": {
    bad: ["export const f = (a: number) => a > 1 & a < 5;", "export const f = (a: number) => (a === 1) | (a === 2);"],
    good: ["export const f = (flags: number) => (flags & 4) !== 0;", "export const f = (a: number) => a > 1 && a < 5;"],
  },
  "unsafe-optional-chain": {
    bad: [
      "export const f = (a?: { b: { c: 1 } }) => (a?.b).c;",
      "export function f(a?: { b: { x: 1 } }) { const { x } = a?.b; return x; }",
      "export const f = (a?: { b: number[] }) => [...a?.b];",
      "export const f = (a?: { b: { c: 1 } }) => (a?.b)!.c;",
    ],
    good: [
      "export const f = (a?: { b: { c: 1 } }) => a?.b.c;",
      "export function f(a?: { b: { x: 1 } }) { const { x } = a?.b ?? { x: 2 }; return x; }",
      "export const f = (a?: { b: object }) => ({ ...a?.b });",
      "export const f = (a?: { b: { c: 1 } }) => (a?.b)?.c;",
    ],
  },
  "duplicate-key": {
    bad: ["export const a = { x: 1, y: 2, x: 3 };", "export const a = { 'x': 1, x() {} };"],
    good: [
      "export const a = (o: object) => ({ x: 1, ...o, x: 2 });",
      "export const a = { get x() { return 1; }, set x(v) { void v; } };",
      "const k = 'x'; export const a = { [k]: 1, x: 2 };",
    ],
  },
  "duplicate-class-member": {
    bad: ["export class A { run() { return 1; } run() { return 2; } }"],
    good: [
      "export class A { static run() { return 1; } run() { return 2; } get x() { return 1; } set x(v) { void v; } }",
      "export class A { get run() { return 1; } static get run() { return 2; } }",
    ],
    path: "file.js",
  },
  "duplicate-case": {
    bad: ["export function f(a: string) { switch (a) { case 'x': return 1; case 'y': return 2; case 'x': return 3; } return 0; }"],
    good: [
      "export function f(a: string) { switch (a) { case 'x': return 1; case 'X': return 2; } return 0; }",
      "export function f(next: () => boolean) { switch (true) { case next(): return 1; case next(): return 2; } return 0; }",
    ],
  },
  "duplicate-condition": {
    bad: ["export function f(a: number) { if (a === 1) return 1; else if (a === 2) return 2; else if (a === 1) return 3; return 0; }"],
    good: [
      "export function f(a: number) { if (a === 1) return 1; else if (a === 2) return 2; return 0; }",
      "export function f(next: () => boolean) { if (next()) return 1; else if (next()) return 2; return 0; }",
    ],
  },
  "same-branches": {
    bad: [
      "export function f(a: boolean) { if (a) { return 'x y'; } else { return 'x y'; } }",
      "export const f = (a: boolean) => (a ? 1 : 1);",
    ],
    good: [
      "export function f(a: boolean) { if (a) { return 'x y'; } else { return 'x  y'; } }",
      "export const f = (a: boolean) => (a ? 1 : 2);",
    ],
  },
  "self-assignment": {
    bad: [
      "export class A { name: string; constructor(name: string) { name = name; this.name = ''; } }",
      "export function f(o: { a: number; b: number }) { o.a = o.a; }",
      "export function f(n: number) { n = n++; return n; }",
    ],
    good: [
      "export class A { name: string; constructor(name: string) { this.name = name; } }",
      "export function f(o: any) {\n  // Runs the setter, which recomputes the total.\n  o.a = o.a;\n}",
      "export function f(a: any) { a.list[0] = a.list[1]; }",
    ],
  },
  "unreachable-code": {
    bad: [
      "export function f() { return 1; run(); } declare function run(): void;",
      "export function f(a: number) { if (a) { return 1; } else { throw new Error('x'); } run(); } declare function run(): void;",
      "export function f() { while (true) { run(); } run(); } declare function run(): void;",
      "export function f(a: number) { switch (a) { case 1: return 1; default: return 2; } run(); } declare function run(): void;",
    ],
    good: [
      "export function f() { return help(); function help() { return 1; } }",
      "export function f(a: number) { while (true) { if (a) break; run(); } run(); } declare function run(): void;",
      "export function f(a: number) { outer: while (true) { while (true) { if (a) break outer; } } run(); } declare function run(): void;",
      "export function f(a: number) { switch (a) { case 1: return 1; } return 2; }",
      "export function f(a: number) { try { return risky(); } catch { run(); } return a; } declare function run(): void; declare function risky(): number;",
      "export function f(a: string) { switch (a) { case 'x': return 1; break; default: return 2; } }",
    ],
  },
  "switch-fallthrough": {
    bad: ["export function f(a: number) { let n = 0; switch (a) { case 1: n = 1; case 2: n = 2; break; } return n; }"],
    good: [
      "export function f(a: number) { switch (a) { case 1: case 2: return 1; default: return 2; } }",
      "export function f(a: number) { let n = 0; switch (a) { case 1: n = 1;\n// falls through\ncase 2: n += 2; break; } return n; }",
      "export function f(a: number) { switch (a) { case 1: process.exit(1); case 2: return 2; } return 0; }",
      "export function f(a: number) { switch (a) { case 1: { if (a) return 1; else throw new Error('x'); } case 2: return 2; } return 0; }",
      "function stop(): never { throw new Error('x'); } export function f(a: number) { switch (a) { case 1: stop(); case 2: return 2; } return 0; }",
    ],
  },
  "unsafe-finally": {
    bad: [
      "export function f() { try { run(); } finally { return 1; } } declare function run(): void;",
      "export function f() { for (;;) { try { run(); } finally { break; } } } declare function run(): void;",
    ],
    good: [
      "export function f() { try { run(); } finally { for (;;) { break; } } } declare function run(): void;",
      "export function f() { try { run(); } finally { later(() => { return 1; }); } } declare function run(): void; declare function later(x: unknown): void;",
      "export function f() { try { run(); } finally { try { run(); throw new Error('x'); } catch (e) { use(e); } } } declare function run(): void; declare function use(x: unknown): void;",
    ],
  },
  "accessor-return": {
    bad: ["export class A { get x() { this.y(); } y() {} }", "export const a = { get x() { if (Math.random() > 1) return 1; } };"],
    good: ["export class A { get x() { return 1; } }", "export class A { get x(): number { throw new Error('not here'); } }"],
  },
  "missing-super": {
    bad: ["class A {} export class B extends A { constructor() { this.x = 1; } }"],
    good: [
      "class A {} export class B extends A { constructor() { super(); } }",
      "class A {} export class B extends A { y = 1; }",
      "export class B extends null { constructor() { return Object.create(B.prototype); } }",
    ],
  },
  "no-effect": {
    bad: [
      "export function f(a: number) { a === 1; }",
      "export function f(a: number) { done; return a; } function done() {}",
      "export function f(a: number) { if (a) new Error('bad'); }",
    ],
    good: [
      "'use strict'; export function f(a: number) { return a === 1; }",
      "export function f(el: any) { el.offsetWidth; new Worker('x'); }",
      "export function f(a?: () => void) { a && a(); a?.(); }",
    ],
  },
  "empty-catch": {
    bad: [
      "export function f() { try { run(); } catch {} } declare function run(): void;",
      "export function f(p: Promise<void>) { return p.catch(() => {}); }",
    ],
    good: [
      "export function f() { try { run(); } catch { /* It may be gone already. */ } } declare function run(): void;",
      "export function f() { try { run(); } catch (e) { throw new Error('x', { cause: e }); } } declare function run(): void;",
      "export function f(p: Promise<void>) {\n  // Best effort: the caller does not care.\n  return p.catch(() => {});\n}",
    ],
  },
  "throw-non-error": {
    bad: [
      "export function f() { throw 'no'; }",
      "export function f(a: string) { throw `no ${a}`; }",
      "export function f() { throw { code: 1 }; }",
    ],
    good: ["export function f() { throw new Error('no'); }", "export function f(e: unknown) { throw e; }"],
  },
  "lost-error-cause": {
    bad: ["export function f() { try { run(); } catch (error) { throw new Error('It failed.'); } } declare function run(): void;"],
    good: [
      "export function f() { try { run(); } catch (error) { throw new Error('It failed.', { cause: error }); } } declare function run(): void;",
      "export function f() { try { run(); } catch { throw new Error('It failed.'); } } declare function run(): void;",
      "export function f() { try { run(); } catch (error) { log(error); throw new Error('It failed.'); } } declare function run(): void; declare function log(x: unknown): void;",
    ],
  },
  "useless-catch": {
    bad: ["export function f() { try { run(); } catch (e) { throw e; } } declare function run(): void;"],
    good: [
      "export function f() { try { run(); } catch (e) { log(e); throw e; } } declare function run(): void; declare function log(x: unknown): void;",
    ],
  },
  "unguarded-json-parse": {
    bad: [
      "export const f = (req: { body: string }) => JSON.parse(req.body);",
      "export const f = () => JSON.parse(localStorage.getItem('x'));",
      "export const f = (event: { data: string }) => JSON.parse(event.data);",
    ],
    good: [
      "export function f(req: { body: string }) { try { return JSON.parse(req.body); } catch (e) { return e; } }",
      "export const f = (a: object) => JSON.parse(JSON.stringify(a));",
    ],
  },
  "callback-return": {
    bad: [
      "export const f = (a: number[]) => a.map((n) => { n * 2; });",
      "export const f = (a: number[]) => a.reduce((sum, n) => { if (n) return sum + n; }, 0);",
      "export const f = (a: number[]) => a.sort((x, y) => { if (x < y) return -1; if (x > y) return 1; });",
    ],
    good: [
      "export const f = (a: number[]) => a.map((n) => n * 2);",
      "export const f = (a: number[]) => Promise.all(a.map(async (n) => { await n; }));",
      "export const f = (a: number[]) => a.filter((n) => { if (n > 1) return true; });",
      "export const f = (a: number[]) => a.map((n) => { throw new Error(String(n)); });",
      "export const f = (a: number[]) => a.reduce((sum, n) => { for (;;) { if (n) return sum; } }, 0);",
    ],
  },
  "array-delete": {
    bad: [
      "const list = [1, 2]; export function f() { delete list[0]; }",
      "export function f(list: string[], i: number) { delete list[i]; }",
    ],
    good: [
      "const table: Record<string, number> = {}; export function f(k: string) { delete table[k]; }",
      "export function f(list: any, i: number) { delete list[i]; }",
    ],
  },
  "for-in-array": {
    bad: [
      "export function f(list: readonly string[]) { for (const i in list) use(i); } declare function use(x: unknown): void;",
      "const list = 'a,b'.split(','); for (const i in list) use(i); declare function use(x: unknown): void; export {};",
    ],
    good: ["export function f(table: Record<string, number>) { for (const k in table) use(k); } declare function use(x: unknown): void;"],
  },
  "text-sort-of-numbers": {
    bad: ["export const f = () => [10, 9, 1].sort();", "export const f = (list: number[]) => list.toSorted();"],
    good: ["export const f = () => [10, 9, 1].sort((a, b) => a - b);", "export const f = (list: string[]) => list.sort();"],
  },
  "shared-fill": {
    bad: [
      "export const rows = new Array(3).fill([]);",
      "export const rows = Array(3).fill({});",
      "export const rows = new Array(3).map((_, i) => i);",
    ],
    good: [
      "export const rows = new Array(3).fill(0);",
      "export const rows = Array.from({ length: 3 }, () => []);",
      "export const rows = new Array(3).fill(0).map((_, i) => i);",
      "export const rows = [...Array(3)].map((_, i) => i);",
    ],
  },
  "parse-int-callback": {
    bad: ["export const f = (list: string[]) => list.map(parseInt);"],
    good: ["export const f = (list: string[]) => list.map(Number);"],
  },
  "parse-int-radix": {
    bad: ["export const f = (s: string) => parseInt(s);", "export const f = (s: string) => Number.parseInt(s);"],
    good: [
      "export const f = (s: string) => parseInt(s, 10);",
      "const parseInt = (s: string) => s; export const f = (s: string) => parseInt(s);",
    ],
  },
  "code-from-text": {
    bad: [
      "export const f = (s: string) => eval(s);",
      "export const f = (s: string) => new Function('a', s);",
      "setTimeout('run()', 10); export {};",
    ],
    good: [
      "export const f = (run: () => void) => setTimeout(run, 10);",
      "function eval2(s: string) { return s; } export const f = (s: string) => eval2(s);",
      "export const isFn = (x: unknown) => x instanceof Function;",
    ],
  },
  "shell-injection": {
    bad: [
      'import { exec } from "node:child_process"; export const f = (file: string) => exec(`rm -rf ${file}`);',
      'import * as cp from "child_process"; export const f = (file: string) => cp.execSync("ls " + file);',
      'const { execSync } = require("child_process"); exports.f = (file) => execSync(`ls ${file}`);',
      'import { spawn } from "node:child_process"; export const f = (file: string) => spawn(`ls ${file}`, { shell: true });',
      'import { exec } from "node:child_process"; export function f(file: string) { const command = "cat " + file; exec(command); }',
    ],
    good: [
      'import { execFile } from "node:child_process"; export const f = (file: string) => execFile("rm", ["-rf", file]);',
      'import { exec } from "node:child_process"; export const f = () => exec("git status");',
      "export const f = (re: RegExp, s: string) => re.exec(`${s}!`);",
      'import { execSync } from "node:child_process"; const tool = "git"; export const f = () => execSync(`${tool} status`);',
    ],
  },
  "sql-injection": {
    bad: [
      "export const f = (db: any, id: string) => db.query(`SELECT * FROM users WHERE id = ${id}`);",
      "export const f = (db: any, name: string) => db.execute('DELETE FROM users WHERE name = \"' + name + '\"');",
    ],
    good: [
      "export const f = (db: any, id: string) => db.query('SELECT * FROM users WHERE id = ?', [id]);",
      "const TABLE_NAME = 'users'; export const f = (db: any) => db.query(`SELECT * FROM ${TABLE_NAME}`);",
      "export const f = (sql: any, id: string) => sql.query(sql`SELECT * FROM users WHERE id = ${id}`);",
    ],
  },
  "html-injection": {
    bad: [
      "export function f(el: any, name: string) { el.innerHTML = `<b>${name}</b>`; }",
      "export const f = (el: any, name: string) => el.insertAdjacentHTML('beforeend', '<i>' + name);",
    ],
    good: [
      "export function f(el: any, name: string) { el.textContent = `<b>${name}</b>`; }",
      "export function f(el: any, name: string) { el.innerHTML = `<b>${escapeHtml(name)}</b>`; } declare function escapeHtml(x: string): string;",
      "export function f(el: any) { el.innerHTML = '<b>fixed</b>'; }",
    ],
  },
  "tls-verification-off": {
    bad: ["export const options = { rejectUnauthorized: false };", 'process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0"; export {};'],
    good: ["export const options = (strict: boolean) => ({ rejectUnauthorized: strict });"],
  },
  "hardcoded-secret": {
    bad: [
      `export const key = "AKIA${"QWERTYUIOP123456"}";`,
      `export const config = { apiKey: "${"k9f8a7s6d5".repeat(2)}" };`,
      `export const token = "ghp_${"a1B2c3D4e5F6".repeat(3)}";`,
      `export class A { private password = "hunter2hunter2"; use() { return this.password; } }`,
    ],
    good: [
      "export const apiKey = process.env.API_KEY;",
      'export const config = { password: "changeme", secret: "" };',
      'export const password = "Enter your password";',
      'export const apiKey = "your-api-key-1234";',
      "export const f = (token: string) => ({ authToken: `${token}` });",
    ],
  },
  "weak-random": {
    bad: ["export const token = Math.random().toString(36).slice(2);", "export const f = () => ({ sessionId: `s${Math.random()}` });"],
    good: ["export const delay = Math.random() * 100;", "export const token = crypto.randomUUID();"],
  },
  "unused-variable": {
    bad: [
      "export function f() { const a = 1; return 2; }",
      "function help() { return help; } export {};",
      "export function f() { let n = 0; n = 1; n++; }",
      "export function f(o: { a: 1; b: 2 }) { const { a, b } = o; return a; }",
    ],
    good: [
      "export function f() { const a = 1; return a; }",
      "export function f() { const _a = 1; return 2; }",
      "export function f(o: { a: 1; b: 2 }) { const { a, ...rest } = o; return rest; }",
      "export function f(p: [1, 2]) { const [a, b] = p; return b; }",
      "export function f(list: number[]) { let n = 0; for (const x of list) n++; return n; }",
      "interface Shape { x: number } export const f = (s: Shape) => s.x;",
      "const Thing = () => null; export const f = () => <Thing />;",
      "var shared = 1;",
      "export function f(a: number, b: number) { return b; }",
      "const a = 1; export { a as b };",
      "enum Color { Red } export const red = Color.Red;",
      "declare const injected: string; export {};",
      "export function f() { let n = 0; return () => n++; }",
    ],
    path: "file.tsx",
  },
  "unused-import": {
    bad: [
      'import { a, b } from "x"; export const c = a;',
      'import type { T } from "x"; export {};',
      'import * as all from "x"; export {};',
    ],
    good: [
      'import { a } from "x"; export const c = a;',
      'import type { T } from "x"; export const f = (t: T) => t;',
      'import "x"; export {};',
      'import React from "react"; export const f = () => <div />;',
      'import { a } from "x"; export { a };',
      'import { d } from "x"; @d export class A {}',
      'import { ns } from "x"; export type T = typeof ns.value;',
      'import { Base } from "x"; export class A implements Base {}',
    ],
    path: "file.tsx",
  },
  "use-before-declaration": {
    bad: [
      "export function f() { use(a); const a = 1; } declare function use(x: unknown): void;",
      "new Job(); class Job {} export {};",
      "export const a = () => { const b = b + 1; return b; };",
    ],
    good: [
      "export const f = () => later; const later = 1;",
      "export class A { make() { return new B(); } } class B {}",
      "export class A { b = limit; } const limit = 1;",
      "type T = typeof value; const value = 1; export const t: T = value;",
      "export const f = () => { const g = () => g(); return g; };",
      "for (const x of [1]) { use(x); } declare function use(x: unknown): void; export {};",
      "export function f() { return help(); } function help() { return 1; }",
    ],
  },
  "constant-write": {
    bad: [
      "const a = 1; export function f() { a = 2; }",
      'import { b } from "x"; export function f() { b++; }',
      "export function f(list: number[]) { for (const x of list) x += 1; }",
    ],
    good: [
      "let a = 1; export function f() { a = 2; return a; }",
      "const a = { b: 1 }; export function f() { a.b = 2; }",
      "const a = 1; export function f() { const a = { c: 0 }; ({ c: a.c } = { c: 1 }); } export { a };",
    ],
  },
  "unknown-name": {
    bad: ["export function f() { const count = 1; return cuont + count; }", "export function f() { total = 5; }"],
    good: [
      "export const f = () => globalThing(1);",
      "export const f = (items) => typeof item === 'undefined' ? items : [];",
      "var a = 1; b = a;",
      "export function f(worker) { return new Worker(worker); }",
      "export function f() { const alerts = []; alert(alerts); }",
    ],
    path: "file.js",
  },
  "regex-backtracking": {
    bad: [
      "export const r = /^(a+)+$/;",
      "export const r = /^(\\w+\\s?)*$/;",
      "export const r = /^(a|a)*$/;",
      "export const r = /^(a|ab|b)*$/;",
      "export const r = /^([a-zA-Z0-9])(([-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}$/;",
      "export const r = /(x+x+)+y/;",
      "export const r = /^(a*)*$/;",
      "export const r = /^(\\d{1,3})*$/;",
    ],
    good: [
      "export const r = /^(a+b)+$/;",
      "export const r = /^(\\w+\\s)*$/;",
      "export const r = /^[a-z]+(-[a-z0-9]+)*$/;",
      'export const r = /"(?:[^"\\\\]|\\\\.)*"/;',
      "export const r = /(a+)+/;",
      "export const r = /^(?:\\d{3})+$/;",
      "export const r = /^(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)(?:\\.(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)){3}$/;",
      "export const r = /^\\s+|\\s+$/g;",
      "export const r = /^(?:a|b)*$/;",
    ],
  },
  "regex-letter-range": {
    bad: ["export const r = /[A-z]+/;"],
    good: ["export const r = /[A-Za-z]+/;"],
  },
  "regex-empty-class": {
    bad: ["export const r = /a[]b/;"],
    good: ["export const r = /a[^]b/;", "export const r = /a\\[\\]b/;", "export const r = /[[\\]]/;"],
  },
  "regex-stateful-test": {
    bad: ["const word = /\\w+/g; export const f = (s: string) => word.test(s);"],
    good: [
      "const word = /\\w+/; export const f = (s: string) => word.test(s);",
      "export function f(s: string) { const word = /\\w+/g; return word.test(s); }",
      "const word = /\\w+/g; export const f = (s: string) => { word.lastIndex = 0; return word.test(s); };",
    ],
  },
  "debugger-statement": {
    bad: ["export function f() { debugger; }"],
    good: ["export const f = { debugger: 1 };"],
  },
  "console-leftover": {
    bad: ["export function f(x: number) { console.log(x); }"],
    good: [
      "#!/usr/bin/env node\nconsole.log(1);",
      "export function f(x: number) { console.error(x); }",
      "export function f(console: { log(x: number): void }) { console.log(1); }",
    ],
  },
  "focused-test": {
    bad: ["test.only('x', () => {});", "fdescribe('x', () => {});"],
    good: [
      "test('x', () => {});",
      "fit(model, data); declare function fit(a: unknown, b: unknown): void; declare const model: 1, data: 2;",
    ],
    path: "some.test.ts",
  },
  "template-in-string": {
    bad: ["export const f = (name: string) => 'Hello ${name}!';", 'export const f = (user: { name: string }) => "Hello ${user.name}!";'],
    good: ["export const f = (name: string) => `Hello ${name}!`;", "export const f = (other: string) => 'Hello ${name}!' + other;"],
  },
  "lost-precision": {
    bad: ["export const id = 12345678901234567890;", "export const id = 9007199254740993;"],
    good: ["export const id = 12345678901234567890n;", "export const big = 1e21;", "export const max = 9007199254740992;"],
  },
  "date-overflow": {
    bad: ["export const d = new Date(2024, 12, 1);"],
    good: ["export const d = new Date(2024, 11, 31);", "export const d = new Date(2024, month); declare const month: number;"],
  },
  "promise-as-value": {
    bad: [
      "async function load() { return { name: 'x' }; } export function f() { const user = load(); return user.name; }",
      "async function load() { return 'x'; } export const f = () => `Hello ${load()}`;",
      "async function count() { return 1; } export const f = () => count() + 1;",
      "async function list() { return [1]; } export function f() { for (const x of list()) use(x); } declare function use(x: unknown): void;",
      "async function role() { return 'admin'; } export const f = () => role() === 'admin';",
      "async function load() { return { name: 'x' }; } export const f = async () => load().name;",
    ],
    good: [
      "async function load() { return { name: 'x' }; } export async function f() { const user = await load(); return user.name; }",
      "async function load() { return { name: 'x' }; } export function f() { const user = load(); return user.then((u) => u.name); }",
      "async function load() { return 1; } const first = load(); export const f = () => load() === first;",
      "function load() { return { name: 'x' }; } export function f() { const user = load(); return user.name; }",
      "export function f() { const p: any = new Promise(() => {}); p.cancel = stop; return p.cancel; } declare function stop(): void;",
    ],
  },
  "promise-never-settles": {
    bad: ["export const p = new Promise((resolve) => { setTimeout(() => {}, 10); });"],
    good: [
      "export const p = new Promise((resolve) => setTimeout(resolve, 10));",
      "export const never = new Promise(() => {});",
      "export const p = new Promise((_resolve, reject) => { reject(new Error('x')); });",
    ],
  },
  "called-callback": {
    bad: ["function run() { use(1); } export const f = () => setTimeout(run(), 100); declare function use(x: unknown): void;"],
    good: [
      "function run() { use(1); } export const f = () => setTimeout(run, 100); declare function use(x: unknown): void;",
      "function make() { return () => 1; } export const f = () => setTimeout(make(), 100);",
    ],
  },
  "ignored-callback-error": {
    bad: ["import { readFile } from 'node:fs'; readFile('a', (err, data) => { use(data); }); declare function use(x: unknown): void;"],
    good: [
      "import { readFile } from 'node:fs'; readFile('a', (err, data) => { if (err) throw err; use(data); }); declare function use(x: unknown): void;",
      "export const f = (log: any) => log((error: Error) => { log(1); });",
      "export const f = (on: any) => on((_err: Error, data: string) => { on(data); });",
    ],
  },
  "off-by-one": {
    bad: ["export function f(list: number[]) { let n = 0; for (let i = 0; i <= list.length; i++) n += list[i]!; return n; }"],
    good: [
      "export function f(list: number[]) { let n = 0; for (let i = 0; i < list.length; i++) n += list[i]!; return n; }",
      "export function f(list: number[]) { for (let i = 1; i <= list.length; i++) use(list[i - 1]); } declare function use(x: unknown): void;",
      "export function f(text: string) { for (let i = 0; i <= text.length; i++) { const c = text[i]; if (c === undefined || c === ',') use(i); } } declare function use(x: unknown): void;",
      "export function f(list: number[]) { for (let i = 0; i <= list.length; i++) use(list.slice(0, i)); } declare function use(x: unknown): void;",
    ],
  },
  "endless-recursion": {
    bad: [
      "export class A { get name() { return this.name; } }",
      "export class A { set name(v: string) { this.name = v; } }",
      "export function f(a: number): number { return f(a + 1); }",
    ],
    good: [
      "export class A { #name = ''; get name() { return this.#name; } set name(v: string) { this.#name = v; } }",
      "export function f(a: number): number { if (a > 3) return a; return f(a + 1); }",
      "export class A { name() { return this.name; } }",
    ],
  },
  "unused-result": {
    bad: [
      "export function f(s: string) { s.trim(); return s; }",
      "export function f(s: string) { s.replace(/a/g, 'b'); return s; }",
      "export function f(a: number[]) { a.concat([1]); return a; }",
    ],
    good: [
      "export function f(s: string) { s = s.trim(); return s; }",
      "export function f(url: string) { location.replace(url); }",
      "export function f(a: number[]) { a.sort(); a.push(1); return a; }",
    ],
  },
  "wrapper-object": {
    bad: ["export const a = new Boolean(false);", "export const b = new String('x');"],
    good: ["export const a = Boolean(0);", "class Number {} export const n = new Number();"],
  },
  "untrusted-input": {
    bad: [
      "import { readFile } from 'node:fs/promises'; export const f = (req: any) => readFile('/data/' + req.query.file);",
      "import { createReadStream } from 'node:fs'; export function f(req: any) { const name = req.params.name; return createReadStream(`/data/${name}`); }",
      "export const f = (req: any, res: any) => res.redirect(req.query.next);",
      "export function f(req: any) { const { url } = req.body; return fetch(url); }",
      "export const f = (req: any) => new RegExp(req.query.q);",
    ],
    good: [
      "import { readFile } from 'node:fs/promises'; export const f = (req: any) => readFile(pathOf(req.query.file)); declare function pathOf(x: string): string;",
      "import { writeFile } from 'node:fs/promises'; export const f = (req: any) => writeFile('/data/log', req.body);",
      "export const f = (res: any) => res.redirect('/home');",
    ],
  },
  "weak-hash": {
    bad: [
      "import { createHash } from 'node:crypto'; export const f = (password: string) => createHash('md5').update(password).digest('hex');",
    ],
    good: [
      "import { createHash } from 'node:crypto'; export const f = (file: Buffer) => createHash('md5').update(file).digest('hex');",
      "import { createHash } from 'node:crypto'; export const f = (token: string) => createHash('sha256').update(token).digest('hex');",
    ],
  },
  "explicit-any": {
    bad: ["export const f = (a: any) => a;", "export const f = (a: unknown) => (a as any).b;"],
    good: ["export const f = (a: unknown) => a;", "export type Result<F extends (...args: any[]) => any> = ReturnType<F>;"],
  },
  "type-check-off": {
    bad: ["// @ts-ignore\nexport const a: number = 'x';", "// @ts-nocheck\nexport {};"],
    good: [
      "// @ts-expect-error: the types of this package are wrong\nexport const a: number = 'x';",
      "// We never write @ts-ignore here.\nexport {};",
    ],
  },
  "var-declaration": {
    bad: ["export function f() { var a = 1; return a; }"],
    good: ["export function f() { const a = 1; return a; }", "var shared = 1;", "declare var injected: string; export const a = injected;"],
  },
};
