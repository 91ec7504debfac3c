import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openKit, put, skillMd, tempFolder } from "./kit.ts";

const tool = (imports: string, schema: string): string => `import { defineTool } from "skillhost";
${imports}
export default defineTool("t", { description: "For a test.", parameters: ${schema}, handler: ({ city }) => city });
`;

describe("a skill in a folder without installed packages", () => {
  test.each([
    ['import { z } from "zod";', "z.object({ city: z.string() })"],
    ['import * as z from "zod/v4";', "z.object({ city: z.string() })"],
    ['import * as z from "zod/mini";', "z.toJSONSchema(z.object({ city: z.string() }))"],
    [
      'import { createRequire } from "node:module";\nconst { z } = createRequire(import.meta.url)("zod");',
      "z.object({ city: z.string() })",
    ],
  ])("a skill imports modules of the host: %s", async (imports, schema) => {
    const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/t.ts": tool(imports, schema) });
    const kit = await openKit([root], { watch: false });
    expect(kit.host.diagnostics).toEqual([]);
    expect(await kit.says("t", { city: "Oslo" })).toBe("Oslo");
    expect((await kit.call("t", {})).resultType).toBe("failure");
  });

  test("a package of the author takes precedence over that of the host", async () => {
    const own = {
      "node_modules/zod/package.json": '{ "name": "zod", "version": "0.0.1", "main": "index.cjs" }',
      "node_modules/zod/index.cjs": 'exports.mine = "of the author";',
    };
    const root = tempFolder({ ...own, "s/SKILL.md": skillMd("s") });
    put(join(root, "s/tools/t.ts"), 'import { mine } from "zod";\nexport default { name: "t", description: "x", handler: () => mine };\n');
    const kit = await openKit([root], { watch: false });
    expect(await kit.says("t")).toBe("of the author");
  });

  test("a skill cannot import the host's other dependencies", async () => {
    const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/t.ts": 'import "skillhost";\nimport "semver";\nexport default [];\n' });
    const kit = await openKit([root], { watch: false });
    expect(kit.found("MODULE_NOT_FOUND")).toHaveLength(1);
  });
});

test("importing a name that skillhost does not export is reported", async () => {
  const root = tempFolder({
    "s/SKILL.md": skillMd("s"),
    "s/tools/t.ts": 'import { defineTools } from "skillhost";\nexport default defineTools([]);\n',
  });
  const kit = await openKit([root], { watch: false });
  const [found] = kit.found("MODULE_EXPORT_MISSING");
  expect(found).toMatchObject({
    severity: "error",
    file: join(root, "s/tools/t.ts"),
    message: expect.stringContaining('"skillhost" has no export "defineTools"'),
  });
  expect(found?.message).toContain("defineTool,");
});

describe("modules that a program shares with its skills", () => {
  const state = { count: 0 };
  const counter = { state, increment: () => ++state.count };
  const counting =
    'import { increment } from "my-app/counter";\nexport default { name: "t", description: "x", handler: () => String(increment()) };\n';

  test("are the same objects for all skills and reloads, and are not loaded before they are needed", async () => {
    state.count = 0;
    let loads = 0;
    const load = async (): Promise<typeof counter> => {
      loads++;
      return counter;
    };
    const required = counting
      .replace("import { increment } from", "const { increment } = require(")
      .replace('counter";', 'counter");')
      .replace("export default", "module.exports =");
    const root = tempFolder({ "s/SKILL.md": skillMd("s") });
    const kit = await openKit([root], { sharedModules: { "my-app/counter": load, "@scope/other": { value: 1 } } });
    expect(loads).toBe(0);
    await kit.saved(() => put(join(root, "s/tools/t.ts"), counting));
    expect(await kit.says("t")).toBe("1");
    await kit.saved(() => put(join(root, "s/tools/t.ts"), counting.replace("String(", "`again ${").replace("())", "()}`")));
    expect(await kit.says("t")).toBe("again 2");
    await kit.saved(() => put(join(root, "s/tools/u.cjs"), required.replace('"t"', '"u"')));
    expect([await kit.says("u"), state.count, loads]).toEqual(["3", 3, 1]);
  });

  test("take precedence over installed packages, and a missing name is reported", async () => {
    const installed = {
      "node_modules/my-app/package.json":
        '{ "name": "my-app", "version": "1.0.0", "exports": { "./counter": "./counter.js" }, "type": "module" }',
      "node_modules/my-app/counter.js": 'export const increment = () => "of the package";',
    };
    const root = tempFolder({ ...installed, "s/SKILL.md": skillMd("s"), "s/tools/t.ts": counting });
    state.count = 10;
    const kit = await openKit([root], { watch: false, sharedModules: { "my-app/counter": counter } });
    expect(await kit.says("t")).toBe("11");
    const wrong = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/t.ts": counting.replaceAll("increment", "decrement") });
    const other = await openKit([wrong], { watch: false, sharedModules: { "my-app/counter": counter } });
    expect(other.found("MODULE_EXPORT_MISSING")).toHaveLength(1);
  });

  test("a module that cannot be imported is reported with the reason, and does not affect other skills", async () => {
    const root = tempFolder({
      "s/SKILL.md": skillMd("s"),
      "s/tools/t.ts": counting,
      "o/SKILL.md": skillMd("o"),
      "o/tools/o.ts": 'export default { name: "o", description: "x", handler: () => "works" };\n// skillhost\n',
    });
    const load = (): Promise<never> => Promise.reject(new Error("the database is down"));
    const kit = await openKit([root], { watch: false, sharedModules: { "my-app/counter": load } });
    expect(await kit.says("o")).toBe("works");
    expect(kit.host.diagnostics).toMatchObject([{ severity: "error", message: expect.stringContaining("the database is down") }]);
  });

  test.each(["./db.ts", "/db", "node:fs", "fs", "skillhost", "skillhost/testing", "https://example.org/x.js", "", "a b"])(
    "cannot be named %j",
    async (specifier) => {
      await expect(openKit([], { watch: false, sharedModules: { [specifier]: {} } })).rejects.toMatchObject({ code: "HOST_OPTIONS" });
    },
  );

  test("must be namespaces or functions", async () => {
    const sharedModules = { "my-app": "./db.js" } as never;
    await expect(openKit([], { watch: false, sharedModules })).rejects.toThrow(/sharedModules\["my-app"\].*namespace/);
  });
});
