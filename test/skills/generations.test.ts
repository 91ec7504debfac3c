import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openKit, poll, put, skillMd, tempFolder, toolSource } from "./kit.ts";

describe("calls that run while their tool is replaced", () => {
  const slow = (word: string): string => `import { appendFileSync } from "node:fs";
import { defineTool } from "skillhost";
const log = (text: string) => appendFileSync(new URL("../log", import.meta.url), text + "\\n");
export default (host: { onDispose(end: () => void): void }) => {
  let isOpen = true;
  host.onDispose(() => { isOpen = false; log("disposed ${word}"); });
  return defineTool("slow", { description: "Waits for the file.", handler: async () => {
    const { existsSync } = await import("node:fs");
    log("started ${word}");
    while (!existsSync(new URL("../go", import.meta.url))) await new Promise((resolve) => setTimeout(resolve, 2));
    return "${word}, " + (isOpen ? "open" : "closed");
  } });
};
`;

  test("running calls finish on their generation, which is disposed of only afterwards", async () => {
    const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/slow.ts": slow("first"), "s/log": "" });
    const log = (): string[] => readFileSync(join(root, "s/log"), "utf8").split("\n").slice(0, -1);
    const kit = await openKit([root]);
    const first = kit.says("slow");
    await poll("the first call runs", () => log().includes("started first"));
    await kit.saved(() => put(join(root, "s/tools/slow.ts"), slow("second")));
    const second = kit.says("slow");
    await poll("the second call runs", () => log().includes("started second"));
    expect(log()).not.toContain("disposed first");
    writeFileSync(join(root, "s/go"), "");
    expect(await first).toBe("first, open");
    expect(await second).toBe("second, open");
    await poll("the first generation has ended", () => log().includes("disposed first"));
    expect(log()).not.toContain("disposed second");
    await kit.close();
    expect(log().at(-1)).toBe("disposed second");
  });

  test("a disposer that throws is logged and does not block the reload", async () => {
    const source = (word: string): string =>
      toolSource("say", JSON.stringify(word), 'export const dispose = () => { throw new Error("will not go"); };');
    const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/say.ts": source("one") });
    const warnings: string[] = [];
    const quiet = { error() {}, info() {}, debug() {}, enabled: () => true };
    const kit = await openKit([root], { logger: { ...quiet, warning: (message) => void warnings.push(message) } });
    await kit.saved(() => put(join(root, "s/tools/say.ts"), source("two")));
    expect(await kit.says("say")).toBe("two");
    expect(warnings).toEqual(["A disposer of a replaced tool failed."]);
  });

  test("a module that is carried over to a renamed skill keeps its resources", async () => {
    const source = `let isOpen = true;
export const dispose = () => { isOpen = false; };
export const { tool } = { tool: (await import("skillhost")).defineTool("say", { description: "Says.", handler: () => (isOpen ? "open" : "closed") }) };
`;
    const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/say.ts": source });
    const kit = await openKit([root]);
    await kit.saved(() => put(join(root, "s/SKILL.md"), skillMd("t")));
    expect(kit.skill("t").tools).toEqual(["say"]);
    expect(await kit.says("say")).toBe("open");
  });
});

describe("the change report of a reload", () => {
  test("a change report lists added, updated and removed names and the duration", async () => {
    const root = tempFolder({
      "s/SKILL.md": skillMd("s"),
      "s/tools/all.ts": `import { defineTool } from "skillhost";
export const a = defineTool("a", { description: "A.", handler: () => "a" });
export const b = defineTool("b", { description: "B.", handler: () => "b" });
`,
      "s/tools/left.ts": toolSource("left", '"left"'),
    });
    const kit = await openKit([root]);
    const [change] = await kit.saved(() =>
      put(
        join(root, "s/tools/all.ts"),
        `import { defineTool } from "skillhost";
export const b = defineTool("b", { description: "Another B.", handler: () => "b" });
export const c = defineTool("c", { description: "C.", handler: () => "c" });
`,
      ),
    );
    expect(change).toEqual({
      added: [],
      updated: [
        {
          name: "s",
          folder: join(root, "s"),
          tools: { added: ["c"], updated: ["b"], removed: ["a"] },
          prompts: { added: [], updated: [], removed: [] },
          resources: { added: [], updated: [], removed: [] },
          durationMs: expect.any(Number),
        },
      ],
      removed: [],
      failed: [],
      files: [join(root, "s/tools/all.ts")],
    });
  });
});
