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
