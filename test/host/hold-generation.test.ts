import { createTestHost, tempSkill } from "skillhost/testing";
import { expect, test } from "vitest";

const moduleText = (answer: string): string => `import { defineTool } from "skillhost";
export default (api) => {
  let isOpen = true;
  api.onDispose(() => { isOpen = false; });
  return defineTool("ask_me", { description: "Answers.", handler: () => "${answer}, " + (isOpen ? "open" : "closed") });
};`;

test("a reload during a permission request does not end the generation that runs the call", async () => {
  using skill = tempSkill({ "SKILL.md": "---\nname: skill\ndescription: Asks.\n---\nx\n", "tools/ask_me.mjs": moduleText("first") });
  let allow: () => void = () => {};
  let asked: () => void = () => {};
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const onPermissionRequest = () =>
    new Promise<{ kind: "approve-once" }>((resolve) => {
      allow = () => resolve({ kind: "approve-once" });
      asked();
    });
  await using kit = await createTestHost({ skillDirectories: [skill.root], session: { onPermissionRequest } });
  const call = kit.call("ask_me");
  await isAsked;
  await kit.change(() => skill.write("tools/ask_me.mjs", moduleText("second")));
  allow();
  expect((await call).textResultForLlm).toBe("first, open");
});
