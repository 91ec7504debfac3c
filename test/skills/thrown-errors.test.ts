import { join } from "node:path";
import type { Logger } from "skillhost";
import { createTestHost, type TestHost } from "skillhost/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Files, put, skillMd, tempFolder } from "./kit.ts";

interface Logged {
  readonly message: string;
  readonly stack?: string;
  readonly place?: { readonly file: string; readonly line: number };
}

function recordingLogger(): { readonly logger: Logger; readonly errors: Logged[] } {
  const errors: Logged[] = [];
  const error = (message: string, data: object = {}): void => void errors.push({ message, ...data });
  return { errors, logger: { error, warning() {}, info() {}, debug() {}, enabled: () => true } };
}

async function open(files: Files): Promise<TestHost & { readonly folder: string; readonly errors: readonly Logged[] }> {
  const root = tempFolder(Object.fromEntries(Object.entries(files).map(([path, text]) => [`s/${path}`, text])));
  put(join(root, "s/SKILL.md"), skillMd("s"));
  const { logger, errors } = recordingLogger();
  const kit = await createTestHost({ skillDirectories: [root], watch: false, logger });
  onTestFinished(() => kit.close());
  return { ...kit, folder: join(root, "s"), errors };
}

// Types, decorators, line breaks and long signatures that compile to nothing, so that no compiled line has its source position.
const greet = `import { defineTool } from "skillhost";

interface Arguments {
  readonly name: string;
}

type Handler =
  (args: Arguments) => Promise<string>;
const handler: Handler = async ({ name }) => {
  throw new Error(\`No greeting for \${name}.\`);
};

export default defineTool("greet", { description: "Greets.", parameters: { type: "object", properties: { name: { type: "string" } } }, handler });
`;

const throwing = (line: number, head = ""): string => `${"\n".repeat(line - 1)}${head}throw new Error("boom");`;

describe("errors that a tool throws", () => {
  test("a thrown error is logged with its source line, and the model sees nothing of it", async () => {
    const kit = await open({ "tools/greet.ts": greet });
    const events: { type: string; data: unknown }[] = [];
    kit.session.on("tool.execution_complete", (event) => void events.push(event));
    const result = await kit.call("greet", { name: "Ada" });
    const file = join(kit.folder, "tools/greet.ts");
    expect(kit.errors).toMatchObject([
      { message: 'Tool "greet" threw.', place: { file, line: 10, column: 9 }, stack: expect.stringContaining(`${file}:10:9`) },
    ]);
    expect(result.textResultForLlm).not.toMatch(/greet\.ts|No greeting/);
    const reported = JSON.stringify(events);
    expect(reported).toContain(`${JSON.stringify(file).slice(1, -1)}:10:9`);
    const [message, place, ...others] = result.sessionLog?.replace("Object.", "").split("\n") ?? [];
    expect([message, place]).toEqual(["Error: No greeting for Ada.", `    at handler (${file}:10:9)`]);
    // Frames of this package do not help the author of the tool; the caller's frame may follow.
    expect(others.filter((frame) => !frame.includes("thrown-errors.test.ts"))).toEqual([]);
  });

  const modules: readonly [string, Files, string][] = [
    [
      "a helper",
      {
        "tools/say.ts": `import { fail } from "./_fail.ts"; import { defineTool } from "skillhost"; export default defineTool("say", { description: "Says.", handler: () => fail() });`,
        "tools/_fail.ts": `interface A { a: 1 }\nexport const fail = (): never => {${throwing(9)}};`,
      },
      "tools/_fail.ts",
    ],
    [
      "the module of a handler",
      {
        "tools/say.json": '{ "name": "say", "description": "Says." }',
        "tools/say.ts": `interface A { a: 1 }\nexport default (): never => {${throwing(9)}};`,
      },
      "tools/say.ts",
    ],
    [
      "CommonJS in TypeScript",
      {
        "tools/say.json": '{ "name": "say", "description": "Says." }',
        "tools/say.cts": `interface A { a: 1 }\nmodule.exports = (): never => {${throwing(9)}};`,
      },
      "tools/say.cts",
    ],
    [
      "CommonJS",
      { "tools/say.json": '{ "name": "say", "description": "Says." }', "tools/say.cjs": `module.exports = () => {${throwing(10)}};` },
      "tools/say.cjs",
    ],
    [
      "an ES module",
      {
        "tools/say.json": '{ "name": "say", "description": "Says." }',
        "tools/say.mjs": `export default async () => {await null;${throwing(10)}};`,
      },
      "tools/say.mjs",
    ],
    [
      "TSX",
      {
        "tools/say.json": '{ "name": "say", "description": "Says." }',
        "tools/say.tsx": `interface A { a: 1 }\nexport default (): never => {${throwing(9)}};`,
      },
      "tools/say.tsx",
    ],
    [
      "a lazily imported module",
      {
        "tools/say.json": '{ "name": "say", "description": "Says." }',
        "tools/say.ts": 'export default async () => (await import("./_late.ts")).default();',
        "tools/_late.ts": `interface A { a: 1 }\nexport default (): never => {${throwing(9)}};`,
      },
      "tools/_late.ts",
    ],
  ];
  test.each(modules)("a thrown error is logged with line 10 of %s", async (_, files, file) => {
    const kit = await open(files);
    await kit.call("say");
    expect(kit.errors).toMatchObject([{ place: { file: join(kit.folder, file), line: 10 } }]);
  });

  test("a thrown error is logged with the line that ran, although the file has changed", async () => {
    const kit = await open({ "tools/greet.ts": greet });
    put(join(kit.folder, "tools/greet.ts"), `// one\n// two\n${greet}`);
    await kit.call("greet");
    await kit.host.reload();
    await kit.call("greet");
    expect(kit.errors.map(({ place }) => place?.line)).toEqual([10, 12]);
  });

  test("a thrown value is logged if it is not an error or has an unreadable stack", async () => {
    const kit = await open({
      "tools/odd.mjs": `import { defineTool } from "skillhost";
        const hostile = Object.defineProperty(new Error("hidden"), "stack", { get() { throw new Error("no"); } });
        export default [defineTool("text", { description: "Throws.", handler: () => { throw "plain"; } }),
          defineTool("hostile", { description: "Throws.", handler: () => { throw hostile; } })];`,
    });
    expect([await kit.call("text"), await kit.call("hostile")].map(({ error }) => error)).toEqual(["plain", "hidden"]);
    expect(kit.errors.map(({ message, place }) => [message, place])).toEqual([
      ['Tool "text" threw.', undefined],
      ['Tool "hostile" threw.', undefined],
    ]);
  });
});

test("an execute function may return any awaitable value", async () => {
  const kit = await open({
    "tools/later.mjs": `export const SCHEMA = { name: "later", description: "Answers later.", inputSchema: { type: "object" } };
      export const execute = () => ({ then: (settle) => void setImmediate(settle, { result: "success", message: "done" }) });`,
  });
  expect(await kit.call("later")).toMatchObject({ resultType: "success", textResultForLlm: "done" });
});
