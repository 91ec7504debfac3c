import { expect, test } from "vitest";
import { StderrTail } from "../../../src/io/process/stderr-tail.ts";

test("only the end is kept, however much there is", () => {
  const tail = new StderrTail();
  for (let count = 0; count < 1000; count++) tail.add(Buffer.from(`${count} ${"x".repeat(100)}\n`));
  expect(tail.text.length).toBe(16 * 1024);
  expect(tail.lastLine).toMatch(/^999 x/);
  tail.add(`${"y".repeat(100_000)}end\n\n  \n`);
  expect(tail.text).toHaveLength(16 * 1024);
  expect(tail.lastLine).toMatch(/^y{300}$/);
});

test("it shows no credentials, and no line where there is none", () => {
  const tail = new StderrTail();
  expect(tail.lastLine).toBeUndefined();
  tail.add("Authorization: Bearer abcdefghijklmnop failed");
  expect(tail.lastLine).toBe("Authorization: [redacted] failed");
});

test.each([
  [
    "Node",
    `node:internal/modules/esm/resolve:283
    throw new ERR_MODULE_NOT_FOUND(
          ^

Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/index.js
    at packageResolve (node:internal/modules/esm/resolve:283:11)
    at async asyncRunEntryPointWithESMLoader (node:internal/modules/run_main:117:5) {
  code: 'ERR_MODULE_NOT_FOUND',
  url: 'file:///srv/node_modules/zod'
}

Node.js v24.1.0
`,
    "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/index.js",
  ],
  [
    "an error that is an object",
    `/srv/index.js:3
  throw Object.assign(new TypeError("API_KEY is not set"), { hint: 1 });
  ^

TypeError: API_KEY is not set
    at main (/srv/index.js:3:9)
    at async Promise.all (index 0) {
  hint: 1
}
`,
    "TypeError: API_KEY is not set",
  ],
  [
    "Python",
    `Traceback (most recent call last):
  File "/srv/server.py", line 3, in <module>
    main()
ModuleNotFoundError: No module named 'mcp'
`,
    "ModuleNotFoundError: No module named 'mcp'",
  ],
  ["Go", `panic: no such host\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/main.go:5 +0x1d\nexit status 2\n`, "panic: no such host"],
  [
    "npm",
    `npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/nope - Not found
npm error 404  'nope@*' is not in this registry.
npm error A complete log of this run can be found in: /root/.npm/_logs/x.log
`,
    "npm error 404 Not Found - GET https://registry.npmjs.org/nope - Not found",
  ],
  ["a program that only says it", `Starting\nPlease set GITHUB_TOKEN.\n`, "Please set GITHUB_TOKEN."],
  ["nothing but what stands around", `}\n`, "}"],
])("of what %s writes it shows the line that names the error", (_, text, line) => {
  const tail = new StderrTail();
  tail.add(text);
  expect(tail.lastLine).toBe(line);
});
