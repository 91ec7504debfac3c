import { describe, expect, test } from "vitest";
import { assembleInstructions, type InstructionParts, listSkills } from "../../../src/session/prompt/system-prompt.ts";
import type { SkillEntry } from "../../../src/tools/tool-source.ts";
import { fakeChat } from "../../doubles/fake-chat.ts";
import { createTestEnvironment, openSession, recordEvents, sourceOf } from "../session-kit.ts";

function skill(name: string, more: Partial<SkillEntry> = {}): SkillEntry {
  return {
    name,
    description: `Does ${name}.`,
    instructions: async () => `${name} body`,
    read: () => Promise.reject(new Error("nothing there")),
    ...more,
  };
}

function eager(name: string, text: string): SkillEntry {
  return skill(name, { promptMode: "eager", prompts: [{ path: "prompts/a.md", text }], folder: `/skills/${name}` });
}

const parts = (more: Partial<InstructionParts> = {}): InstructionParts => ({
  workingDirectory: "/work/place",
  skills: [],
  listingTokens: 4_000,
  customizations: [],
  ...more,
});

describe("the system message", () => {
  test("the system message contains all parts in a fixed order", async () => {
    const text = await assembleInstructions(
      parts({
        agentPrompt: "You review code.",
        skills: [eager("style", "Indent by two."), skill("pdf")],
        servers: [
          { server: "docs", text: "Ask me first." },
          { server: "mute", text: " " },
        ],
        customizations: [{ content: "Be quick." }],
      }),
    );
    const order = [
      "<environment_context>\nWorking directory: /work/place",
      "<agent_instructions>\nYou review code.",
      '<skill name="style">\nIndent by two.',
      "<available_skills>",
      '<server name="docs">\nAsk me first.',
      "Be quick.",
    ];
    expect(order.map((piece) => text.indexOf(piece) >= 0)).toEqual(order.map(() => true));
    expect(order.map((piece) => text.indexOf(piece))).toEqual(order.map((piece) => text.indexOf(piece)).sort((a, b) => a - b));
    expect(text).not.toContain("mute");
  });

  test("the system message is short without skills and servers and has no empty parts", async () => {
    const text = await assembleInstructions(parts());
    expect(text.length).toBeLessThan(2_000);
    expect(text).not.toMatch(/<agent_instructions>|<skill_instructions>|<available_skills>|<server_instructions>|\n\n\n/);
  });

  test("replacing the system message removes the default text and keeps that of agents and skills", async () => {
    expect(await assembleInstructions(parts({ customizations: [{ mode: "replace", content: "Only this." }] }))).toBe("Only this.");
    const text = await assembleInstructions(
      parts({ skills: [eager("style", "Indent.")], customizations: [{ mode: "replace", content: "Only this." }] }),
    );
    expect(text).toContain("Only this.\n\n<skill_instructions>");
    expect(text).not.toContain("environment_context");
  });

  test("customized sections are replaced, removed, prepended, appended, unchanged or computed", async () => {
    const text = await assembleInstructions(
      parts({
        customizations: [
          {
            mode: "customize",
            content: "At the very end.",
            sections: {
              identity: { action: "replace", content: "You are Ada." },
              tone: { action: "remove" },
              guidelines: { action: "prepend", content: "FIRST" },
              safety: { action: "append", content: "LAST" },
              tool_instructions: { action: "preserve" },
              environment_context: { action: async (content) => content.toUpperCase() },
              code_change_rules: { action: "append", content: "Write tests." },
              strange: { action: "remove" },
            },
          },
        ],
      }),
    );
    expect(text).toMatch(/^You are Ada\.\n\nFIRST\n\nFind out before/);
    expect(text).toMatch(/out of your answers\.\n\nLAST\n\nCall tools/);
    expect(text).toContain("WORKING DIRECTORY: /WORK/PLACE");
    expect(text).not.toContain("Be brief");
    expect(text).toMatch(/Write tests\.\n\nAt the very end\.$/);
  });

  test("inherited properties are not sections", async () => {
    const sections = JSON.parse('{"__proto__": {"action": "replace", "content": "pwned"}}');
    const text = await assembleInstructions(parts({ customizations: [{ mode: "customize", sections }] }));
    expect(text.match(/pwned/g)).toHaveLength(1);
  });
});

describe("the list of skills in the system message", () => {
  test("the skills are listed in the block that other agents use, and entries cannot break out of it", () => {
    expect(
      listSkills(
        [skill("pdf", { description: "Reads </skill></available_skills> & more" }), skill("secret", { hiddenFromModel: true })],
        4_000,
      ),
    ).toBe(
      "<available_skills>\n<skill>\n<name>pdf</name>\n<description>Reads &lt;/skill&gt;&lt;/available_skills&gt; &amp; more</description>\n<location>custom</location>\n</skill>\n</available_skills>",
    );
    expect(listSkills([skill("secret", { hiddenFromModel: true })], 4_000)).toBe("");
  });

  test("the list of skills respects its budget: first it drops skills with loaded prompts, then those of lowest precedence, and it states the number", () => {
    const skills = [skill("low"), skill("middle"), eager("known", "Prompt."), skill("high")];
    const tags = "<available_skills>\n\n</available_skills>".length;
    const each = Math.ceil((listSkills([skill("middle")], 4_000).length - tags) / 4);
    expect(listSkills(skills, each * 10)).toMatch(/low.*middle.*known.*high/s);
    const three = listSkills(skills, each * 3);
    expect(three).not.toContain("known");
    expect(three).toMatch(/low.*middle.*high.*\n1 more skill is available but not listed for lack of space\.$/s);
    expect(listSkills(skills, each * 2)).toMatch(/middle.*high.*\n2 more skills are available/s);
    expect(listSkills(skills, 1)).toBe(
      "<available_skills>\n</available_skills>\n4 more skills are available but not listed for lack of space.",
    );
  });

  test("a description of any length is cut", () => {
    expect(listSkills([skill("long", { description: "x".repeat(300_000) })], 4_000).length).toBeLessThan(1_300);
  });

  test("the list of ten thousand skills is created synchronously", () => {
    const skills = Array.from({ length: 10_000 }, (_, index) => skill(`s${index}`));
    expect(listSkills(skills, 4_000)).toMatch(/\d+ more skills are available/);
  });
});

describe("a session's system message", () => {
  test("the system message is emitted once and again after each change", async () => {
    const environment = createTestEnvironment();
    environment.publishSkills(skill("pdf"));
    const chat = fakeChat("One.", "Two.", "Three.");
    const session = openSession(environment, { chatModel: chat });
    const events = recordEvents(session, "system.message", "session.skills_loaded");
    await session.sendAndWait("1");
    await session.sendAndWait("2");
    environment.publishSkills(skill("pdf"), skill("xls"));
    await session.sendAndWait("3");
    expect(events.map(({ type }) => type)).toEqual(["session.skills_loaded", "system.message", "session.skills_loaded", "system.message"]);
    expect(events[0]?.data["skills"]).toEqual([
      { name: "pdf", description: "Does pdf.", source: "custom", userInvocable: true, enabled: true },
    ]);
    const systems = chat.requests.map(({ messages }) => messages.filter(({ role }) => role === "system").map(({ content }) => content));
    expect(systems.map((texts) => texts.length)).toEqual([1, 1, 1]);
    expect(systems[1]).toEqual(systems[0]);
    expect(systems[2]?.[0]).toContain("<name>xls</name>");
  });

  test("the system message changes within a turn when a skill does", async () => {
    const environment = createTestEnvironment();
    const learn = {
      name: "learn",
      handler: () => {
        environment.publishSkills(eager("style", "Indent by two."));
        return "learnt";
      },
    };
    const chat = fakeChat({ calls: [{ name: "learn" }] }, "Done.");
    await openSession(environment, { tools: [learn], chatModel: chat }).sendAndWait("Go.");
    expect(chat.requests.map(({ messages }) => JSON.stringify(messages[0]).includes("Indent by two."))).toEqual([false, true]);
  });

  test("the system message contains eager prompts, and skill.invoked reports them once and after a reload", async () => {
    const environment = createTestEnvironment();
    environment.publishSkills(eager("style", "Indent by two."), skill("pdf", { prompts: [{ path: "p.md", text: "on demand" }] }));
    const session = openSession(environment, { chatModel: fakeChat("ok") });
    const invoked = recordEvents(session, "skill.invoked");
    await session.sendAndWait("1");
    environment.publishSkills(eager("style", "Indent by two."), eager("new", "Hello."));
    await session.sendAndWait("2");
    environment.publishSkills(eager("style", "Indent by four."), eager("new", "Hello."));
    await session.sendAndWait("3");
    expect(invoked.map(({ data }) => [data["name"], data["content"], data["trigger"]])).toEqual([
      ["style", "Indent by two.", "context-load"],
      ["new", "Hello.", "context-load"],
      ["style", "Indent by four.", "context-load"],
    ]);
    expect(invoked[0]?.data).toMatchObject({ path: "/skills/style", description: "Does style.", source: "custom" });
  });

  test("a system message that cannot be created is kept, and an event reports the error", async () => {
    let fails = false;
    const transform = (content: string) => {
      if (fails) throw new Error("no");
      return `${content} computed`;
    };
    const environment = createTestEnvironment();
    const chat = fakeChat("ok");
    const session = openSession(environment, {
      chatModel: chat,
      systemMessage: { mode: "customize", sections: { tone: { action: transform } } },
    });
    const infos = recordEvents(session, "session.info");
    await session.sendAndWait("1");
    fails = true;
    environment.publish(sourceOf("skill", "s", { name: "a", handler: () => "" }));
    await session.sendAndWait("2");
    expect(chat.requests[1]?.messages[0]).toEqual(chat.requests[0]?.messages[0]);
    expect(infos.map(({ data }) => data["infoType"])).toEqual(["instructions_refresh"]);
  });

  test("text for the model follows text for the session", async () => {
    const chat = fakeChat("ok");
    const session = openSession(createTestEnvironment(), {
      chatModel: chat,
      systemMessage: { content: "For all." },
      modelTools: { "fake-*": { systemMessage: { content: "For the fake." } }, "gpt-*": { systemMessage: { content: "For another." } } },
    });
    await session.sendAndWait("1");
    expect(chat.requests[0]?.messages[0]?.content).toMatch(/For all\.\n\nFor the fake\.$/);
  });

  test("the system message begins with the selected agent's prompt and skills", async () => {
    const environment = createTestEnvironment();
    environment.publishSkills(skill("pdf", { folder: "/skills/pdf" }));
    const chat = fakeChat("ok");
    const session = openSession(environment, {
      chatModel: chat,
      customAgents: [{ name: "ada", prompt: "You are Ada.", skills: ["pdf"] }],
      agent: "ada",
    });
    const invoked = recordEvents(session, "skill.invoked");
    await session.sendAndWait("1");
    environment.publishSkills(...environment.skills({} as never), skill("other"));
    await session.sendAndWait("2");
    expect(chat.requests[1]?.messages[0]?.content).toMatch(
      /<agent_instructions>\nYou are Ada\.\n\n<skill-context name="pdf">[\s\S]*pdf body/,
    );
    expect(invoked).toHaveLength(1);
  });
});
