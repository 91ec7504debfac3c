import { createHash } from "node:crypto";
import type { Client } from "@modelcontextprotocol/client";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { describe, expect, test } from "vitest";
import {
  type Answer,
  answerOf,
  deferred,
  eras,
  modernRequest,
  post,
  type ServedSkill,
  serveSkill,
  skillDocument,
  toolModule,
} from "./serving-kit.ts";

const offers = toolModule(`[
  definePrompt("summary", {
    title: "Summary",
    description: "Sums up.",
    arguments: { topic: { description: "What of", required: true, complete: ["tools", "toys", "other"] } },
    handler: ({ topic }) => \`Sum up \${topic}.\`,
  }),
  definePrompt("broken", { description: "Fails.", handler: () => { throw new Error("the password is hunter2"); } }),
  definePrompt("asks", {
    description: "Asks first.",
    handler: async (_args, { ask }) => {
      const { content } = await ask("elicitation", { message: "Tone?", requestedSchema: { type: "object", properties: { tone: { type: "string" } } } });
      return \`Be \${content.tone}.\`;
    },
  }),
  defineResource("notes://today", { name: "Today", description: "Notes.", mimeType: "text/plain", read: () => "Nothing yet." }),
  defineResource("notes://{year}/{name}", { name: "Notes", read: (_uri, { year, name }) => \`\${name} of \${year}\`, complete: { year: ["2025", "2026"] } }),
  defineResource("live://now", {
    name: "Now",
    read: () => "now",
    watch: (_uri, changed) => { globalThis.touchNow = changed; return () => { globalThis.touchNow = undefined; globalThis.unwatched?.(); }; },
  }),
]`);

const files = { "skill.json": JSON.stringify({ name: "helper", tools: ["tools/offers.ts"], version: "1.0.0" }), "tools/offers.ts": offers };

describe.each(eras)("a client of the %s era", (era) => {
  test("gets prompts with arguments, suggestions, and an error that says what is missing", async () => {
    await using served = await serveSkill(files);
    const client = await served.connect(era);
    const { prompts } = await client.listPrompts();
    expect(prompts.find(({ name }) => name === "summary")).toMatchObject({
      title: "Summary",
      description: "Sums up.",
      arguments: [{ name: "topic", description: "What of", required: true }],
    });
    const prompt = await client.getPrompt({ name: "summary", arguments: { topic: "all" } });
    expect(prompt.messages).toEqual([{ role: "user", content: { type: "text", text: "Sum up all." } }]);
    await expect(client.getPrompt({ name: "summary" })).rejects.toMatchObject({ code: -32602, message: expect.stringContaining("topic") });
    await expect(client.getPrompt({ name: "nothing" })).rejects.toMatchObject({ code: -32602 });
    const { completion } = await client.complete({
      ref: { type: "ref/prompt", name: "summary" },
      argument: { name: "topic", value: "to" },
    });
    expect(completion).toEqual({ values: ["tools", "toys"], total: 2, hasMore: false });
  });

  test("learns nothing of what failed inside", async () => {
    await using served = await serveSkill(files);
    const client = await served.connect(era);
    const error = await client.getPrompt({ name: "broken" }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: -32603 });
    expect(String(error)).not.toContain("hunter2");
  });

  test("is asked while a prompt is made", async () => {
    await using served = await serveSkill(files);
    const setUp = (client: Client): void =>
      client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { tone: "kind" } }));
    const client = await served.connect(era, setUp, { elicitation: {} });
    const { messages } = await client.getPrompt({ name: "asks" });
    expect(messages).toMatchObject([{ content: { text: "Be kind." } }]);
  });

  test("a client reads resources and templates, and gets an error for missing ones", async () => {
    await using served = await serveSkill(files);
    const client = await served.connect(era);
    const { resources } = await client.listResources();
    expect(resources).toContainEqual(expect.objectContaining({ uri: "notes://today", name: "Today", mimeType: "text/plain" }));
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates).toMatchObject([{ uriTemplate: "notes://{year}/{name}" }]);
    expect((await client.readResource({ uri: "notes://today" })).contents).toEqual([
      { uri: "notes://today", mimeType: "text/plain", text: "Nothing yet." },
    ]);
    expect((await client.readResource({ uri: "notes://2026/may" })).contents).toMatchObject([{ text: "may of 2026" }]);
    const ref = { type: "ref/resource", uri: "notes://{year}/{name}" } as const;
    expect((await client.complete({ ref, argument: { name: "year", value: "2025" } })).completion.values).toEqual(["2025"]);
    await expect(client.readResource({ uri: "notes://missing/home/here" })).rejects.toMatchObject({
      code: -32602,
      data: { uri: "notes://missing/home/here" },
    });
  });

  test("hears of a resource that it subscribed to, until it does not want to any more", async () => {
    await using served = await serveSkill(files);
    const client = await served.connect(era);
    const heard = deferred<string>();
    client.setNotificationHandler("notifications/resources/updated", ({ params: { uri } }) => heard.resolve(uri));
    const unwatched = deferred();
    const shared = globalThis as { touchNow?: () => void; unwatched?: () => void };
    shared.unwatched = () => unwatched.resolve();
    const uri = "live://now";
    const listening =
      era === "modern" ? await client.listen({ resourceSubscriptions: [uri] }) : void (await client.subscribeResource({ uri }));
    await expect.poll(() => shared.touchNow).toBeDefined();
    shared.touchNow?.();
    expect(await heard.promise).toBe(uri);
    await (listening === undefined ? client.unsubscribeResource({ uri }) : listening.close());
    await unwatched.promise;
  });

  test("a client is notified of saved prompts and resources", async () => {
    await using served = await serveSkill(files);
    const client = await served.connect(era);
    const [prompts, resources] = [deferred(), deferred()];
    client.setNotificationHandler("notifications/prompts/list_changed", () => prompts.resolve());
    client.setNotificationHandler("notifications/resources/list_changed", () => resources.resolve());
    await client.listPrompts();
    await client.listResources();
    if (era === "modern") await client.listen({ promptsListChanged: true, resourcesListChanged: true });
    served.skill.write("tools/offers.ts", offers.replaceAll("summary", "digest").replaceAll("notes://today", "notes://now"));
    await Promise.all([prompts.promise, resources.promise]);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain("digest");
  });
});

describe("the Skills extension", () => {
  const document = skillDocument("helper", "Helps with everything.");

  function ask(served: ServedSkill, method: string, params: object = {}): Promise<Answer> {
    const { body, headers } = modernRequest(method, params as Record<string, unknown>);
    return answerOf(post(served.face.url, body, headers));
  }

  test("lists skills with the digest of every file, and gives each file as it was listed", async () => {
    const bytes = Uint8Array.of(0, 159, 146, 150);
    await using served = await serveSkill({
      "SKILL.md": document,
      "references/a guide.md": "# Guide",
      "data.bin": bytes,
      ".env": "SECRET=1",
    });
    const { result } = await ask(served, "skills/list");
    expect(result).toMatchObject({ ttlMs: expect.any(Number), cacheScope: "private" });
    const [skill] = result.skills;
    expect(skill).toMatchObject({
      uri: "skill://helper/SKILL.md",
      frontmatter: { name: "helper", description: "Helps with everything." },
    });
    expect(skill.resources.map(({ uri }: { uri: string }) => uri)).toEqual([
      "skill://helper/SKILL.md",
      "skill://helper/data.bin",
      "skill://helper/references/a%20guide.md",
    ]);
    for (const { uri, digest, size } of skill.resources) {
      const { contents } = (await ask(served, "resources/read", { uri })).result;
      const content = contents[0].text === undefined ? Buffer.from(contents[0].blob, "base64") : Buffer.from(contents[0].text);
      expect(digest).toBe(`sha256:${createHash("sha256").update(content).digest("hex")}`);
      expect(size).toBe(content.byteLength);
    }
    expect((await ask(served, "skills/get", { uri: skill.uri })).result.skill).toEqual(skill);
    expect((await ask(served, "skills/get", { uri: "skill://missing/SKILL.md" })).error.code).toBe(-32602);
  });

  test("a client reads folders of skills, and gets an error for other URIs", async () => {
    await using served = await serveSkill({ "SKILL.md": document, "references/guide.md": "# Guide" });
    const { result } = await ask(served, "resources/directory/read", { uri: "skill://helper" });
    expect(result.resources).toMatchObject([
      { uri: "skill://helper/SKILL.md", name: "SKILL.md", mimeType: "text/markdown" },
      { uri: "skill://helper/references", name: "references", mimeType: "inode/directory" },
    ]);
    for (const uri of ["skill://helper/SKILL.md", "skill://helper/..", "skill://", "skill://missing", "file:///etc"])
      expect([uri, (await ask(served, "resources/directory/read", { uri })).error?.code]).toEqual([uri, -32602]);
    for (const uri of ["skill://helper/../../etc/passwd", "skill://helper/%2e%2e/secret", "skill://helper/.env"])
      expect([uri, (await ask(served, "resources/read", { uri })).error?.code]).toEqual([uri, -32602]);
  });

  test("gives new digests for files that were saved, also those that no tool is made of", async () => {
    await using served = await serveSkill({ "SKILL.md": document, "references/guide.md": "# Guide" });
    const digests = async (): Promise<Record<string, string>> => {
      const { result } = await ask(served, "skills/list");
      return Object.fromEntries(result.skills[0].resources.map(({ uri, digest }: { uri: string; digest: string }) => [uri, digest]));
    };
    const before = await digests();
    served.skill.write("references/guide.md", "# Another guide");
    const uri = "skill://helper/references/guide.md";
    await expect.poll(async () => (await digests())[uri]).not.toBe(before[uri]);
    expect((await digests())["skill://helper/SKILL.md"]).toBe(before["skill://helper/SKILL.md"]);
    expect((await ask(served, "resources/read", { uri })).result.contents).toMatchObject([{ text: "# Another guide" }]);
  });

  test("serves skills as people write them so that a strict client reads every file of each", async () => {
    await using served = await serveSkill({ "SKILL.md": document });
    const written: Record<string, string> = {
      "Spaced Name": "---\nname: Spaced Name\ndescription: Has a name with a space.\n---\nBody of it.\n",
      "no-front-matter": "# Title\n\nDoes things.\n",
      nested: "---\nname: nested\ndescription: Nested.\nmetadata:\n  openclaw:\n    requires: { bins: [jq] }\n---\nBody.\n",
      colons: "---\nname: colons\ndescription: Use it: now\n---\nBody.\n",
      long: `---\nname: long\ndescription: ${"word ".repeat(400)}\n---\nBody.\n`,
      unclosed: "---\nname: unclosed\ndescription: Not closed.\n\n# Body\n",
    };
    for (const [folder, text] of Object.entries(written)) served.skill.write(`../${folder}/SKILL.md`, text);
    served.skill.write("../lower/skill.md", skillDocument("lower"));
    served.skill.write("../utf16/SKILL.md", Buffer.from(`\uFEFF${skillDocument("utf16")}`, "utf16le"));
    served.skill.write("../Spaced Name/references/a guide.md", "# Guide");
    await served.test.host.reload();
    const skills = new SkillsClient(await served.connect("modern"));
    const { skills: listed } = await skills.list();
    expect(listed.map(({ frontmatter }) => frontmatter.name)).toEqual([
      ...["colons", "helper", "long", "lower", "nested", "no-front-matter", "spaced-name", "unclosed", "utf16"],
    ]);
    for (const skill of listed) {
      const files = skill.resources as readonly { readonly uri: string }[];
      for (const { uri } of files) expect(await skills.read(skill, uri)).toMatchObject({ verified: true });
    }
    const { resources } = await skills.readDirectory("skill://spaced-name");
    expect(resources.map(({ name }) => name)).toEqual(["SKILL.md", "references"]);
    const original = await ask(served, "resources/read", { uri: "skill://Spaced%20Name/SKILL.md" });
    expect(original.result.contents).toMatchObject([{ text: written["Spaced Name"] }]);
  });

  test("goes through many skills page by page, each once", async () => {
    await using served = await serveSkill({ "SKILL.md": document });
    for (let index = 0; index < 120; index++) served.skill.write(`../skill-${index}/SKILL.md`, skillDocument(`skill-${index}`));
    await served.test.host.reload();
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const { result } = await ask(served, "skills/list", cursor === undefined ? {} : { cursor });
      seen.push(...result.skills.map(({ uri }: { uri: string }) => uri));
      cursor = result.nextCursor;
    } while (cursor !== undefined);
    expect(seen).toHaveLength(121);
    expect(new Set(seen).size).toBe(121);
    expect((await ask(served, "skills/list", { cursor: "made up" })).error.code).toBe(-32602);
  });
});

test("more than a thousand resources are listed in pages, each once", async () => {
  const many = toolModule(
    `Array.from({ length: 2_050 }, (_, index) => defineResource("notes://" + (index * 7) % 2_050, { name: "Note " + index, read: () => "" }))`,
  );
  await using served = await serveSkill({ ...files, "tools/offers.ts": many });
  const client = await served.connect(eras[0]!);
  const uris: string[] = [];
  let pages = 0;
  for (let cursor: string | undefined; ; pages++) {
    const page = await client.request({ method: "resources/list", params: cursor === undefined ? {} : { cursor } });
    uris.push(...page.resources.map(({ uri }) => uri));
    if (page.nextCursor === undefined) break;
    cursor = page.nextCursor;
  }
  expect(pages).toBe(2);
  const notes = uris.filter((uri) => uri.startsWith("notes://"));
  expect(new Set(notes).size).toBe(2_050);
  expect(notes).toHaveLength(2_050);
  await expect(client.request({ method: "resources/list", params: { cursor: "AAAA" } })).rejects.toMatchObject({ code: -32602 });
});
