import { createTestHost, tempSkill } from "skillhost/testing";
import { expect, test } from "vitest";
import { fakeChat } from "../doubles/fake-chat.ts";

const notes = (extra = ""): string =>
  `---\nname: release-notes\ndescription: Writes release notes.\narguments: [from, to]\n${extra}---\nRead {baseDir}/guide.md. Cover $from to $to. All: $ARGUMENTS\n`;

async function openWith(text: string) {
  const skill = tempSkill({ "SKILL.md": text }, { name: "release-notes" });
  const chat = fakeChat("ok");
  const kit = await createTestHost({ skillDirectories: [skill.root], watch: false, session: { chatModel: chat } });
  const invoked: unknown[] = [];
  kit.session.on("skill.invoked", ({ data }) => invoked.push(data));
  const say = async (prompt: string): Promise<string> => {
    await kit.session.sendAndWait({ prompt });
    return String(chat.requests.at(-1)?.messages.at(-1)?.content);
  };
  return {
    folder: skill.folder,
    say,
    invoked,
    async [Symbol.asyncDispose]() {
      await kit.close();
      skill[Symbol.dispose]();
    },
  };
}

test("a prompt that begins with a skill's name gives the model its instructions, with the arguments filled in once", async () => {
  await using kit = await openWith(notes());
  const heard = await kit.say("/release-notes v1 '$ARGUMENTS {baseDir}'");
  expect(heard).toContain(`<skill-context name="release-notes">`);
  expect(heard).toContain(`Read ${kit.folder}/guide.md. Cover v1 to $ARGUMENTS {baseDir}. All: v1 '$ARGUMENTS {baseDir}'`);
  expect(heard).not.toContain("/release-notes v1");
  expect(kit.invoked).toMatchObject([{ name: "release-notes", trigger: "user-invoked" }]);
});

test.each([
  ["a name that no skill has", notes(), "/unknown x"],
  ["a skill that users must not invoke", notes("user-invocable: false\n"), "/release-notes v1 v2"],
  ["a name within a sentence", notes(), "see /release-notes v1"],
])("%s is an ordinary prompt", async (_what, text, prompt) => {
  await using kit = await openWith(text);
  expect(await kit.say(prompt)).toContain(prompt);
  expect(kit.invoked).toEqual([]);
});

test("a skill that is hidden from the model can still be invoked by the user", async () => {
  await using kit = await openWith(notes("disable-model-invocation: true\n"));
  expect(await kit.say("/release-notes a b")).toContain("Cover a to b.");
});
